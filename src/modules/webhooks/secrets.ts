/** Secrets of signatures that stand in the datastore: `{{ svckv.system.github_secret | decrypt_kv }}`. */
import { createRenderer, findTemplates } from '../../core/template-values.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { TriggerAuthor } from '../triggers/types.ts'

/**
 * Makes what gives the secret that a text stands for: read anew each time, so that a secret that was changed counts at once.
 *
 * The result throws what rendering says, and for a secret that is empty: anybody could sign with that.
 */
export function createSecretReader(
  templates: (author: TriggerAuthor | undefined) => TemplateScope,
): (text: string, author: TriggerAuthor | undefined) => string {
  return (text, author) => {
    const found = findTemplates(text)
    if (found === undefined) return text
    const { variables, filters } = templates(author)
    const renderer = createRenderer(found, { filters })
    const secret = renderer.render('signature.secret', text, new Map(Object.entries(variables)))
    if (typeof secret !== 'string' || secret === '') {
      throw new Error('the template of the secret gives no text: is there such an item in the datastore?')
    }
    return secret
  }
}
