/** What templates in the parameters of an execution may read. */
import { parameterScope, type ReadSecrets } from '../../../core/parameter-scope.ts'
import { readerOf, type TemplateReader } from '../../../core/template-reader.ts'
import type { TemplateScope } from '../../../lib/template/index.ts'
import type { PackConfigs } from '../ports.ts'
import type { Execution } from '../types.ts'

/** Where templates in parameters find what they read. */
export interface TemplateSources {
  /** The datastore. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  packConfigs: PackConfigs
}

/**
 * What the templates in its parameters may read.
 *
 * @param read gets the secrets among it
 * @param author see `readerOf`
 * @param stranger see `parameterScope`
 */
export function templateScope(
  { templates, packConfigs }: TemplateSources,
  execution: Execution,
  read: ReadSecrets,
  author?: string,
  stranger?: string,
): TemplateScope {
  return parameterScope(
    templates(readerOf(execution, author)),
    execution.context,
    // The author of a configuration is not a caller, so no permissions are checked.
    () => packConfigs.resolve(execution.action.pack, readerOf(execution)),
    read,
    stranger,
  )
}
