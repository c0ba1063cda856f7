export { MAX_PATTERN_INSTRUCTIONS, patternSize } from './pattern-size.ts'
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
