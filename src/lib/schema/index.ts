export { MAX_PATTERN_INSTRUCTIONS, patternSize } from './pattern-size.ts'
export { record, Type, type Schema, type Static, type TObject, type TProperties } from './record.ts'
export {
  MASK,
  canonical,
  checkDraft4,
  checkParameterSchema,
  compileDraft4,
  compileParameters,
  compilePattern,
  compileSchema,
  isObject,
  represent,
  type Check,
  type JsonSchema,
  type ParameterSchema,
  type SchemaProblem,
} from './schema.ts'
