export {
  floatText,
  JsonNumber,
  jsonNumber,
  JsonNumberError,
  MAX_NUMBER_CHARS,
  nearestNumber,
  parseNumber,
  toNumeric,
  truncated,
  wholeNumber,
} from './number.ts'
export { entriesOf, keysOf, mapObject, objectOf, rememberOrder, setOwn } from './order.ts'
export { JsonLimitError, readJson, readLargeJson, type JsonLimits } from './read.ts'
export { isLong, writeFiniteJson, writeJson, writeJsonInPieces, writeReplacedJson, WrittenJson } from './write.ts'
