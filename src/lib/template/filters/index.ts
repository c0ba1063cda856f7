import { collectionFilters } from './collection.ts'
import { dataFilters } from './data.ts'
import type { TemplateFilter } from './filter.ts'
import { numberFilters } from './number.ts'
import { regexFilters } from './regex.ts'
import { textFilters } from './text.ts'
import { versionFilters } from './version.ts'

/** Every built-in filter by name. To add one, write it in the file of its kind. */
export const filters: ReadonlyMap<string, TemplateFilter> = new Map([
  ...textFilters,
  ...numberFilters,
  ...collectionFilters,
  ...dataFilters,
  ...regexFilters,
  ...versionFilters,
])
