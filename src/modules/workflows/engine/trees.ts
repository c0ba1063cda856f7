/**
 * The order of events: those of one tree of workflows are handled one after the other. What waits while a commit is under
 * way shares the next one.
 */

/** What one commit brings about, while it is planned. */
export interface Commit {
  /** Resolves when it is durable. Rejects as `Database.write`; then nothing of it has happened. */
  write(): Promise<void>
  /** It was stored. */
  keep(): void
  /** It was not stored. */
  discard(): void
}

export interface Trees<C extends Commit> {
  /**
   * Plans a part of a commit of the tree, when its turn has come.
   *
   * @param root id of the workflow at the top
   * @param plan adds to the commit. It is called again, with another commit, when others that shared the first one failed
   * @returns resolves when the part is stored. Rejects as `plan` and `Database.write`
   */
  perform(root: string, plan: (commit: C) => Promise<void>): Promise<void>
  /** Resolves when nothing is under way. */
  idle(): Promise<void>
}

/** Each part has the changes of an execution, and of its workflow: this many take about a millisecond each. */
const MAX_TOGETHER = 32

interface Part<C> {
  readonly plan: (commit: C) => Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export function createTrees<C extends Commit>(newCommit: () => C): Trees<C> {
  /** By root; a tree is there while a commit of it is under way. */
  const waiting = new Map<string, Part<C>[]>()
  const idle: (() => void)[] = []

  async function work(root: string, parts: Part<C>[]): Promise<void> {
    while (parts.length > 0) await carryOut(parts.splice(0, MAX_TOGETHER))
    waiting.delete(root)
    if (waiting.size === 0) for (const resolve of idle.splice(0)) resolve()
  }

  async function carryOut(parts: readonly Part<C>[]): Promise<void> {
    const commit = newCommit()
    try {
      for (const { plan } of parts) await plan(commit)
      await commit.write()
    } catch (error) {
      commit.discard()
      // One that fails must not take others with it.
      if (parts.length > 1) for (const part of parts) await carryOut([part])
      else parts[0]?.reject(error)
      return
    }
    commit.keep()
    for (const { resolve } of parts) resolve()
  }

  return {
    perform: (root, plan) =>
      new Promise((resolve, reject) => {
        const part = { plan, resolve, reject }
        const parts = waiting.get(root)
        if (parts !== undefined) {
          parts.push(part)
          return
        }
        const first = [part]
        waiting.set(root, first)
        void work(root, first)
      }),
    idle: () =>
      waiting.size === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            idle.push(resolve)
          }),
  }
}
