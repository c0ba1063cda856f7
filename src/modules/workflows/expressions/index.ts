export { ExpressionError, ExpressionExhausted, type ExpressionErrorClass } from './error.ts'
export { evaluate, evaluateNative, type EvaluateOptions } from './facade.ts'
export { findExpressions, type ExpressionMistake, type Found, type FoundExpression, type Language } from './find.ts'
export type { CurrentTask, DatastoreKey, Reading, Readings, Scope, TaskRecord } from './scope.ts'
