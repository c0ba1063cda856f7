export type { SecretFilter } from './filter.ts'
export { maskedParts } from './masked-parts.ts'
export { createSecretValues, type SecretValues } from './secret-values.ts'
export { compileSecrets, keepMasked, maskSecrets, secretsIn, type Replace, type ReplaceSecrets } from './secrets.ts'
