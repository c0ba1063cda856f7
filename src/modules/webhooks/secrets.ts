/** Signature secrets stored in the datastore: `{{ svckv.system.github_secret | decrypt_kv }}`. */
import { createRenderer, findTemplates } from '../../core/template-values.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { TriggerAuthor } from '../triggers/types.ts'

/**
 * Returns a function that renders a signature secret at each call, so that a changed secret applies at once.
 *
 * The function throws the error of rendering, and also for an empty secret, with which anybody could sign.
 */
export function createSecretReader(
  templates: (author: TriggerAuthor | undefined) => TemplateScope,
): (text: string, author: TriggerAuthor | undefined) => string {
  return (text, author) => {
    const found = findTemplates(text)
    if (found === undefined) return text
    const { variables, filters } = templates(author)
    const renderer = createRenderer(found, { filters })
    const rendered = renderer.render('signature.secret', text, new Map(Object.entries(variables)))
    // Files and shells end a text with a line end, which no sender means.
    const secret = typeof rendered === 'string' ? rendered.trim() : ''
    if (secret === '') {
      throw new Error('the template of the secret renders to no text; check that the datastore has the item')
    }
    return secret
  }
}
