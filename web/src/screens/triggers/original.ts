/** The trigger instance that this payload was sent again from; undefined: it is the first. */
export function originalIdOf(payload: unknown): string | undefined {
  const context = memberOf(payload, '__context')
  const id = memberOf(context, 'original_id')
  // The sender of a webhook can write anything there.
  return typeof id === 'string' && /^[0-9a-f]{24}$/.test(id) ? id : undefined
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Record<string, unknown>)[name] // looked at before it is used
}
