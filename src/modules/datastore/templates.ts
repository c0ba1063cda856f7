/** `svckv.system.<key>`, `svckv.user.<key>` and `decrypt_kv` in templates (contract 02, 2.6; 05, 5.11). */
import { theirName, type Compat } from '../../core/compat/index.ts'
import { isAppError, permissionMissing } from '../../core/errors.ts'
import type { Rights } from '../../http/index.ts'
import { TemplateError, type HostFunction, type Namespace } from '../../lib/template/index.ts'
import { now } from '../../core/time.ts'
import { problemOfName } from './keys.ts'
import type { DatastoreService } from './service.ts'
import type { KeyStore } from './store.ts'
import type { ItemKey, KeyScope, KeyValuePair } from './types.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { DatastoreScope, DatastoreTemplates } from './ports.ts'
import { keyResource, type Scope } from '../../core/permissions.ts'

const STACKSTORM_NAME = theirName('template', 'svckv') ?? ''

export function createTemplates(deps: {
  store: KeyStore
  service: Pick<DatastoreService, 'reveal' | 'auditDecryption'>
  readonly rightsOf: (user: string, scopes?: readonly Scope[]) => Rights
  /** `rbac.enable` */
  isAccessControlled: boolean
  compat: Pick<Compat, 'isOn'>
}): DatastoreTemplates {
  const { store, service, rightsOf, isAccessControlled, compat } = deps

  /** Throws for missing items too, so that the error does not reveal whether the item exists. @throws TemplateError */
  function requireView(reader: TemplateReader, key: ItemKey, isDecrypted: boolean): void {
    const resource = { ...keyResource(key), isDecrypted }
    const { user, author = user, scopes } = reader
    const refused = [user, author].find((who) => {
      // Without access control, users can still not read the items of other users.
      if (!isAccessControlled && key.user !== '' && key.user !== who) return true
      return !rightsOf(who, who === user ? scopes : undefined).may('key_value_pair_view', resource)
    })
    if (refused === undefined) return
    throw new TemplateError('FILTER', permissionMissing(refused, 'key_value_pair_view', resource.uid).message)
  }

  function readValue(reader: TemplateReader, key: ItemKey): string {
    if (problemOfName(key.name) !== undefined) return ''
    requireView(reader, key, false)
    return store.find(key, now())?.value ?? ''
  }

  /** Namespace of the items whose names start with the path. A dot in a name is a level of the path. */
  function itemsBelow(reader: TemplateReader, scope: KeyScope, path?: string): Namespace {
    const keyOf = (name: string): ItemKey => ({ scope, user: scope === 'svckv.user' ? reader.user : '', name })
    return {
      get: (name) => itemsBelow(reader, scope, path === undefined ? name : `${path}.${name}`),
      has: (name) => readValue(reader, keyOf(path === undefined ? name : `${path}.${name}`)) !== '',
      ...(path === undefined ? {} : { value: () => readValue(reader, keyOf(path)) }),
    }
  }

  /** Decrypts only the cipher text of an existing item that the reader can view, wherever the text comes from. */
  function decrypt(reader: TemplateReader, encrypted: unknown): string {
    if (encrypted === '') throw new TemplateError('FILTER', 'no value to decrypt: the key does not exist or is empty')
    if (typeof encrypted !== 'string') throw new TemplateError('FILTER', 'only the value of a key can be decrypted')
    const item = store.findByCipherText(encrypted.toUpperCase(), now())
    if (item === undefined) {
      throw new TemplateError('FILTER', 'the value is not the encrypted value of any key')
    }
    return reveal(reader, item)
  }

  function reveal(reader: TemplateReader, item: KeyValuePair): string {
    requireView(reader, item, true)
    try {
      const plain = service.reveal(item)
      service.auditDecryption({ user: reader.user, execution_id: reader.executionId }, item.name)
      return plain
    } catch (error) {
      if (isAppError(error)) throw new TemplateError('FILTER', error.message)
      throw error
    }
  }

  return {
    read(reader, { scope, user, name }, isDecrypted) {
      const key: ItemKey = { scope: `svckv.${scope}`, user, name }
      if (problemOfName(name) !== undefined) return undefined
      requireView(reader, key, false)
      const item = store.find(key, now())
      if (item === undefined) return undefined
      return isDecrypted && item.encrypted
        ? { value: reveal(reader, item), isSecret: true }
        : { value: item.value, isSecret: false }
    },
    templates(reader): DatastoreScope {
      const scopes = new Map<string, Namespace>([
        ['system', itemsBelow(reader, 'svckv.system')],
        ['user', itemsBelow(reader, 'svckv.user')],
      ])
      const decryptValue: HostFunction = ([value]) => decrypt(reader, value)
      const svckv: Namespace = { get: (name) => scopes.get(name) }
      return {
        variables: { svckv, ...(compat.isOn ? { [STACKSTORM_NAME]: svckv } : {}) },
        filters: { decrypt_kv: decryptValue },
      }
    },
  }
}
