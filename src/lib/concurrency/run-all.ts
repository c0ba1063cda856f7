/** Clean-up that must not stop half-way. */

/** Runs every step in order, whatever the others did. @throws AggregateError with everything that failed */
export async function runAll(steps: readonly (() => unknown)[], message: string): Promise<void> {
  const errors: unknown[] = []
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, message)
}
