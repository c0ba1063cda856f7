/** Which actions fit what somebody types, the likeliest first. */
import type { ActionRecord } from '../../api/records.ts'
import { compareText } from '../../text.ts'

/** What the list knows of an action. */
export type ActionListEntry = Pick<ActionRecord, 'ref' | 'pack' | 'name' | 'description' | 'enabled' | 'tags'>

export type ListRow = { kind: 'pack'; pack: string; count: number } | { kind: 'action'; action: ActionListEntry }

export interface SearchableAction {
  action: ActionListEntry
  ref: string
  text: string
}

const MAX_TEXT = 2000

/** In the order of their packs and names, with what is searched in small letters. */
export function searchable(actions: readonly ActionListEntry[]): SearchableAction[] {
  return actions
    .map((action) => {
      const { ref, description, tags } = action
      const words = tags.map(({ name, value }) => `${name} ${value}`).join(' ')
      return { action, ref: ref.toLowerCase(), text: `${ref} ${description.slice(0, MAX_TEXT)} ${words}`.toLowerCase() }
    })
    .sort((a, b) => compareText(a.action.pack, b.action.pack) || compareText(a.action.name, b.action.name))
}

/**
 * Without a query all, below the names of their packs; else those that have every word of it, those that begin with it before
 * those that only have it somewhere.
 */
export function rowsFor(actions: readonly SearchableAction[], query: string): ListRow[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return grouped(actions)
  const ranked: { rank: number; action: ActionListEntry }[] = []
  for (const { action, ref, text } of actions) {
    if (!words.every((word) => text.includes(word))) continue
    ranked.push({ rank: rankOf(ref, words), action })
  }
  // Sorting keeps the order of those of one rank.
  ranked.sort((a, b) => a.rank - b.rank)
  return ranked.map(({ action }) => ({ kind: 'action', action }))
}

function grouped(actions: readonly SearchableAction[]): ListRow[] {
  const rows: ListRow[] = []
  let heading: { kind: 'pack'; pack: string; count: number } | undefined
  for (const { action } of actions) {
    if (heading?.pack !== action.pack) {
      heading = { kind: 'pack', pack: action.pack, count: 0 }
      rows.push(heading)
    }
    heading.count += 1
    rows.push({ kind: 'action', action })
  }
  return rows
}

function rankOf(ref: string, words: readonly string[]): number {
  const [first = ''] = words
  const name = ref.slice(ref.indexOf('.') + 1)
  if (ref === first || name === first) return 0
  if (name.startsWith(first) || ref.startsWith(first)) return 1
  return words.every((word) => ref.includes(word)) ? 2 : 3
}
