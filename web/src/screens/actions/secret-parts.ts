/** Whether a value of this schema is a secret, or may hold one. In doubt it does. */
export function hasSecret(schema: unknown, depth = 0): boolean {
  if (typeof schema !== 'object' || schema === null) return false
  if (depth > 40) return true
  if (!Array.isArray(schema) && 'secret' in schema && schema.secret === true) return true
  return Object.entries(schema).some(
    ([keyword, part]) => keyword !== 'default' && keyword !== 'enum' && hasSecret(part, depth + 1),
  )
}
