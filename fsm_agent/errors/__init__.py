"""Every error that this package raises, in one tree.

    FsmAgentError
    ├── InvalidPlan                 a plan, its inputs or a model's draft has problems (all of them at once)
    ├── ConditionError              an expression is refused, or failed when it was evaluated
    │   ├── ExpressionSyntax            code "syntax"
    │   ├── ForbiddenExpression         code "forbidden"
    │   ├── ExpressionTooComplex        code "too_complex"
    │   ├── UnknownName                 code "unknown_name"
    │   ├── UnknownField                code "unknown_field"
    │   │   └── UnknownTaskReference        `results.X` without a task X
    │   ├── ExpressionType              code "type"
    │   ├── ExpressionBudget            code "budget"
    │   └── ExpressionValue             code "value"
    ├── IllegalTransition           a trigger that the machine does not allow
    ├── NotJson                     a value cannot be kept as plain JSON data
    ├── SkillError
    │   ├── BadSkill                    a function cannot be a skill as it is declared
    │   ├── SkillLoadError              a skill file or module failed to import
    │   ├── DuplicateSkill              two skills of one name
    │   ├── UnknownSkill                no skill of that name
    │   ├── BadParameters               what a call was given does not fit the skill's signature
    │   ├── RefusedByFilter             a before or after filter refused parameters or a result
    │   ├── CallTimeout                 an attempt took longer than it may
    │   ├── TooLarge                    a result or a file has more bytes than it may
    │   ├── VisitClosed                 a write to the context after the attempt was over
    │   ├── UndeclaredWrite             a write to a context key that is not declared
    │   ├── FileError                   a file cannot be read or written
    │   ├── HttpError                   an HTTP request got no good answer
    │   │   ├── HttpUnreachable             no connection was made: nothing was sent
    │   │   └── HttpBusy                    the server says: not now (429, 503)
    │   └── SkillFailed                 a safe-executed function failed for good
    ├── RunError
    │   ├── UnknownRun                  no run of that id
    │   ├── RunExists                   a run of that id is there already
    │   ├── RunNotActive                the run has ended, or nobody drives it
    │   ├── RunHeld                     another process drives the run
    │   ├── LeaseLost                   another process has taken the run over
    │   ├── MissingSecret               a run cannot go on before its secret inputs are given again
    │   ├── UnknownTask                 the run has no task of that id
    │   └── DecisionRefused             a decision that fits no waiting approval, or comes second
    ├── StoreError                  the place where runs are kept
    │   ├── StoreBusy                   somebody else is writing
    │   ├── StoreUnavailable            it cannot be opened, read or written: no disk, no connection, no right
    │   ├── NotAStore                   a file or database of another program, or a damaged one
    │   ├── StoreTooNew                 written by a newer version of this package
    │   ├── JournalBroken               a run's journal was cut off or changed, or does not fit this program
    │   └── SnapshotRefused             a folded run that was kept to start from is of no use
    ├── ModelError                  a language model gave no answer
    │   ├── ModelNotSet                 no server, or no model, is named
    │   ├── ModelKeyRefused             the server wants a key, or another one (401, 403)
    │   ├── ModelUnreachable            no connection was made: refused, unknown host, bad certificate
    │   ├── ModelTimeout                no whole answer in time
    │   ├── ModelBusy                   the server says: not now (429), and went on saying so
    │   ├── ModelFault                  the server failed (5xx, or an error within its answer)
    │   ├── ModelRefused                the server refused the request (other 4xx): its model, its length, its form
    │   ├── NotAModel                   what answers there is no chat completion: wrong URL, HTML, no JSON
    │   ├── AnswerTooLarge              an answer has more bytes than it may
    │   └── AnswerCut                   the connection ended before the answer did
    ├── NoTemplate                  no plan template fits the goal, or several do
    ├── DiagramError                a picture cannot be drawn here
    └── UsageError                  wrong use of the command line or the API

Messages say what, where and what to do. They never hold a data value that may be secret.
"""

from __future__ import annotations

from fsm_agent.errors.models import (
    AnswerCut,
    AnswerTooLarge,
    ModelBusy,
    ModelError,
    ModelFault,
    ModelKeyRefused,
    ModelNotSet,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
    NotAModel,
)
from fsm_agent.errors.plans import (
    ConditionError,
    ExpressionBudget,
    ExpressionSyntax,
    ExpressionTooComplex,
    ExpressionType,
    ExpressionValue,
    ForbiddenExpression,
    InvalidPlan,
    NoTemplate,
    Problem,
    Severity,
    UnknownField,
    UnknownName,
    UnknownTaskReference,
)
from fsm_agent.errors.root import DiagramError, FsmAgentError, NotJson, UsageError
from fsm_agent.errors.runs import (
    DecisionRefused,
    IllegalTransition,
    LeaseLost,
    MissingSecret,
    RunError,
    RunExists,
    RunHeld,
    RunNotActive,
    UnknownRun,
    UnknownTask,
)
from fsm_agent.errors.skills import (
    BadParameters,
    BadSkill,
    CallTimeout,
    DuplicateSkill,
    FileError,
    HttpBusy,
    HttpError,
    HttpUnreachable,
    RefusedByFilter,
    SkillError,
    SkillFailed,
    SkillLoadError,
    TooLarge,
    UndeclaredWrite,
    UnknownSkill,
    VisitClosed,
)
from fsm_agent.errors.stores import (
    JournalBroken,
    NotAStore,
    SnapshotRefused,
    StoreBusy,
    StoreError,
    StoreTooNew,
    StoreUnavailable,
)

__all__ = [
    "AnswerCut",
    "AnswerTooLarge",
    "BadParameters",
    "BadSkill",
    "CallTimeout",
    "ConditionError",
    "DecisionRefused",
    "DiagramError",
    "DuplicateSkill",
    "ExpressionBudget",
    "ExpressionSyntax",
    "ExpressionTooComplex",
    "ExpressionType",
    "ExpressionValue",
    "FileError",
    "ForbiddenExpression",
    "FsmAgentError",
    "HttpBusy",
    "HttpError",
    "HttpUnreachable",
    "IllegalTransition",
    "InvalidPlan",
    "JournalBroken",
    "LeaseLost",
    "MissingSecret",
    "ModelBusy",
    "ModelError",
    "ModelFault",
    "ModelKeyRefused",
    "ModelNotSet",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnreachable",
    "NoTemplate",
    "NotAModel",
    "NotAStore",
    "NotJson",
    "Problem",
    "RefusedByFilter",
    "RunError",
    "RunExists",
    "RunHeld",
    "RunNotActive",
    "Severity",
    "SkillError",
    "SkillFailed",
    "SkillLoadError",
    "SnapshotRefused",
    "StoreBusy",
    "StoreError",
    "StoreTooNew",
    "StoreUnavailable",
    "TooLarge",
    "UndeclaredWrite",
    "UnknownField",
    "UnknownName",
    "UnknownRun",
    "UnknownSkill",
    "UnknownTask",
    "UnknownTaskReference",
    "UsageError",
    "VisitClosed",
]
