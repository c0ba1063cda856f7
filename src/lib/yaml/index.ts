export { nonTextKeysOf, readYamlValue, rememberNonText, type ReadLimits, type YamlWarning } from './read.ts'
export type { YamlNode } from './nodes.ts'
export { readInt, typeOfPlain } from './scalars.ts'
export { YamlError } from './tokens.ts'
