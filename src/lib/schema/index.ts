export { checkDraft4, checkParameterSchema, createSchemaRoom } from './check-schema.ts'
export {
  compileDraft4,
  compileParameters,
  compileParametersInGroups,
  compileSchema,
  type ParameterCheck,
} from './compile.ts'
export { nearestDeclared } from './exact.ts'
export { canonical } from './keywords.ts'
export { MASK, represent } from './messages.ts'
export { compilePattern, unusablePatternIn } from './pattern.ts'
export { MAX_PATTERN_INSTRUCTIONS, patternSize } from './pattern-size.ts'
export { followReference, hasReference } from './references.ts'
export { record, Type, type Schema, type Static, type TObject, type TProperties } from './record.ts'
export { usableDraft4 } from './usable.ts'
export {
  fieldOf,
  isObject,
  type SchemaCheck,
  type JsonSchema,
  type ParameterSchema,
  type SchemaProblem,
} from './types.ts'
