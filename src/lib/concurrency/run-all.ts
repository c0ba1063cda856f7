/** Clean-up that must not stop at the first failure. */

/** Runs every step in order, even after failures. @throws AggregateError with every failure */
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
