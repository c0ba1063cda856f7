export { getMember } from './access.ts'
export { integer, operate, sign } from './arithmetic.ts'
export { compare, compareText, contains, equals } from './compare.ts'
export { roundTo } from './decimal.ts'
export { filterError, limitError, typeError } from './error.ts'
export { parseJsonPath, select, type JsonPathStep } from './filters/jsonpath.ts'
export { versionMatches } from './filters/version.ts'
export { plainValue } from './json.ts'
export { Budget, defaultLimits } from './limits.ts'
export { findAll, replaceAll, replaceMatches, type RegExpMatch } from './matching.ts'
export { isMapping, mappingGet, ownValue } from './mapping.ts'
export { compileTemplatePattern, paySearch, type PatternOptions } from './pattern.ts'
export {
  BudgetExhausted,
  TemplateError,
  type TemplateErrorCode,
  applyFilter,
  callableNames,
  callsOf,
  evaluateExpression,
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
export { indexOfText, lastIndexOfText, splitByText } from './search.ts'
export { characterCount, charactersOf, quoteText, sliceCharacters, splitSpace, strip, textOf } from './text.ts'
export {
  Float,
  LazyNamespace,
  Sequence,
  TemplateObject,
  Undefined,
  adopt,
  float,
  isIntegerValue,
  isList,
  isNumeric,
  isNamespace,
  isTrue,
  resolveLazy,
  toNumber,
  typeNameOf,
  type Value,
} from './values.ts'
