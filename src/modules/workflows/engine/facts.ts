/** What an expression in the thread asks the server: facts that are too many to send all of them. */
import type { DatastoreKey, Scope } from '../expressions/index.ts'

export type Fact =
  | { readonly kind: 'result' }
  | { readonly kind: 'status' | 'record'; readonly name: string; readonly route: number | undefined }
  | { readonly kind: 'key'; readonly key: DatastoreKey; readonly decrypt: boolean }

/** @returns null: there is none; of a key that cannot be read, `{problem}` */
export function factOf(scope: Scope, fact: Fact): unknown {
  switch (fact.kind) {
    case 'result':
      return scope.task?.result() ?? null
    case 'status':
      return scope.taskStatus(fact.name, fact.route) ?? null
    case 'record':
      return scope.taskRecord(fact.name, fact.route) ?? null
    case 'key':
      try {
        return { value: scope.readKey(fact.key, fact.decrypt) ?? null }
      } catch (error) {
        return { problem: error instanceof Error ? error.message : String(error) }
      }
  }
}
