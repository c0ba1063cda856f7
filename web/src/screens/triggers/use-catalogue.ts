import { ApiError, list } from '../../api/client.ts'
import { useLoaded, type Loaded } from '../../api/load.ts'
import {
  catalogueOf,
  type Catalogue,
  type CatalogueRule,
  type CatalogueTrigger,
  type CatalogueType,
} from './catalogue.ts'

/** The largest page that anybody may ask for, unless it was configured otherwise. */
const TYPES_TOGETHER = 100
const MAX_TYPES = 5000

/** What the caller may see of trigger types, triggers and the rules that use them. */
export function useCatalogue(): Loaded<Catalogue> {
  return useLoaded(
    async (signal) => {
      const [types, triggers, rules] = await Promise.all([
        loadTypes(signal),
        list<CatalogueTrigger>('triggers', undefined, signal),
        loadRules(signal),
      ])
      return catalogueOf(types, triggers.items, rules)
    },
    [],
    ['trigger_type', 'trigger', 'rule'],
  )
}

async function loadTypes(signal: AbortSignal): Promise<CatalogueType[]> {
  const found: CatalogueType[] = []
  for (;;) {
    const query = { include_attributes: 'ref,pack,name,description', limit: TYPES_TOGETHER, offset: found.length }
    const { items, total } = await list<CatalogueType>('triggertypes', query, signal)
    found.push(...items)
    if (items.length === 0 || found.length >= Math.min(total, MAX_TYPES)) return found
  }
}

/** Undefined: the caller may list none. */
async function loadRules(signal: AbortSignal): Promise<CatalogueRule[] | undefined> {
  try {
    return (await list<CatalogueRule>('rules', { include_attributes: 'ref,enabled,trigger.ref,trigger.type' }, signal))
      .items
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return undefined
    throw error
  }
}
