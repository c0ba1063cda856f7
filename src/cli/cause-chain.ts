/** The chain of causes in a trace (contract 07, 7.1; contract 09, 9.6). */
import { textOrEmpty, toList, toObject } from './connection/responses.ts'
import type { Json } from './output/print.ts'

/** The kinds of `caused_by`, in causal order. */
export const componentKinds = ['trigger_instance', 'rule', 'action_execution'] as const

export type ComponentKind = (typeof componentKinds)[number]

/** The attribute of a trace that holds its components of a kind. */
export const listOf = (kind: ComponentKind): string => `${kind}s`

/**
 * The trace reduced to one of its components and its causes.
 *
 * @param id of the component; of a rule for all its matches, or with `:<trigger instance id>` for that match
 * @returns undefined when there is no such component
 */
export function causeChainOf(trace: Json, kind: ComponentKind, id: string): Json | undefined {
  const lists = componentKinds.map((each) => ({ kind: each, components: toList(trace[listOf(each)]) }))
  const byName = new Map<string, Json[]>()
  const add = (name: string, component: Json): void => {
    const known = byName.get(name)
    if (known === undefined) byName.set(name, [component])
    else known.push(component)
  }
  for (const { kind: each, components } of lists) {
    for (const component of components) {
      const name = `${each} ${textOrEmpty(component['object_id'])}`
      add(name, component)
      // The same rule may match for several instances.
      if (each === 'rule') add(`${name}:${causeOf(component).id}`, component)
    }
  }
  const kept = new Set<Json>()
  const open = [...(byName.get(`${kind} ${id}`) ?? [])]
  if (open.length === 0) return undefined
  for (let component = open.pop(); component !== undefined; component = open.pop()) {
    if (kept.has(component)) continue
    kept.add(component)
    const cause = causeOf(component)
    for (const each of byName.get(`${cause.type} ${cause.id}`) ?? []) open.push(each)
  }
  return {
    ...trace,
    ...Object.fromEntries(
      lists.map(({ kind: each, components }) => [listOf(each), components.filter((component) => kept.has(component))]),
    ),
  }
}

/** The trace without the trigger instances for which no rule has matched. */
export function withoutNoopTriggers(trace: Json, whole: Json = trace): Json {
  const causes = new Set(toList(whole[listOf('rule')]).map((rule) => causeOf(rule).id))
  const instances = toList(trace[listOf('trigger_instance')])
  return {
    ...trace,
    [listOf('trigger_instance')]: instances.filter((instance) => causes.has(textOrEmpty(instance['object_id']))),
  }
}

function causeOf(component: Json): { type: string; id: string } {
  const { type, id } = toObject(component['caused_by'])
  return { type: textOrEmpty(type), id: textOrEmpty(id) }
}
