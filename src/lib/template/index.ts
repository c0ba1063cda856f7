export { getMember } from './access.ts'
export { compare, contains, equals } from './compare.ts'
export { filterError, limitError, typeError } from './error.ts'
export { parseJsonPath, select, type JsonPathStep } from './filters/jsonpath.ts'
export { versionMatches } from './filters/version.ts'
export { Budget, defaultLimits } from './limits.ts'
export { isMapping, mappingGet, ownValue } from './mapping.ts'
export { compileTemplatePattern, type PatternOptions } from './pattern.ts'
export {
  BudgetExhausted,
  TemplateError,
  type TemplateErrorCode,
  isTemplate,
  joinScopes,
  partsOf,
  references,
  render,
  type HostFunction,
  type Limits,
  type Namespace,
  type TemplateScope,
} from './render.ts'
export {
  Float,
  LazyNamespace,
  Undefined,
  adopt,
  isList,
  isNumeric,
  isNamespace,
  isTrue,
  resolveLazy,
  toNumber,
  typeNameOf,
  type Value,
} from './values.ts'
