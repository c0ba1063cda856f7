import {
  joinScopes,
  TemplateError,
  type HostFunction,
  type Namespace,
  type TemplateScope,
} from '../lib/template/index.ts'
import { permissionMissing } from './errors.ts'
import type { PackConfig } from './pack-content.ts'
import type { Permission } from './permissions.ts'

/** Secrets that templates have read, to be masked in all output. Grows with each read. */
export type ReadSecrets = unknown[]

/** Who may read the secrets in the configuration of a pack by templates of their own. */
export const CONFIG_SECRETS: Permission = 'pack_config'

/** A value that no template can read: every use is refused, with the reason. */
export function refusedValue(why: string): Namespace {
  const refuse = (): never => {
    throw new TemplateError('FILTER', why)
  }
  return { get: refuse, has: refuse, value: refuse }
}

/**
 * `action_context`, `config_context`, and of the datastore `svckv`, `system` and `_user`; svc reads each only when a
 * template uses it.
 *
 * @param datastore `svckv` and `decrypt_kv`
 * @param config of the pack of the action; called at most once
 * @param secrets gets decrypted values, and the secrets of the configuration after it was read
 * @param stranger user who wrote the templates and must not read the secrets of the configuration; absent: nobody
 */
export function parameterScope(
  datastore: TemplateScope,
  context: Record<string, unknown>,
  config: () => PackConfig,
  secrets: ReadSecrets,
  stranger?: string,
): TemplateScope {
  return joinScopes(
    {
      variables: {
        ...itemScopes(datastore),
        action_context: context,
        config_context: configContext(config, secrets, stranger),
      },
    },
    watchDecryption(datastore, (plain) => secrets.push(plain)),
  )
}

/** @param onDecryption called with each decrypted value */
export function watchDecryption(scope: TemplateScope, onDecryption: (plain: unknown) => void): TemplateScope {
  const decrypt = scope.filters?.['decrypt_kv']
  if (decrypt === undefined) return scope
  const watched: HostFunction = (positional, named) => {
    const plain = decrypt(positional, named)
    onDecryption(plain)
    return plain
  }
  return joinScopes(scope, { variables: {}, filters: { decrypt_kv: watched } })
}

/** Older names of the two scopes of items. */
function itemScopes({ variables: { svckv } }: TemplateScope): Record<string, Namespace> {
  if (!isNamespace(svckv)) return {}
  const scopeOf = (name: string): Namespace => ({
    get(item) {
      const scope = svckv.get(name)
      return isNamespace(scope) ? scope.get(item) : undefined
    },
  })
  return { system: scopeOf('system'), _user: scopeOf('user') }
}

function configContext(config: () => PackConfig, secrets: ReadSecrets, stranger: string | undefined): Namespace {
  let values: Record<string, unknown> | undefined
  const read = (): Record<string, unknown> => {
    if (values !== undefined) return values
    const resolved = config()
    if (stranger === undefined) {
      secrets.push(...resolved.secrets)
      ;({ values } = resolved)
    } else {
      const { message } = permissionMissing(stranger, CONFIG_SECRETS)
      values = resolved.withoutSecrets((path) => refusedValue(`config_context.${path.join('.')} is secret. ${message}`))
    }
    return values
  }
  return {
    get: (name) => (Object.hasOwn(read(), name) ? read()[name] : undefined),
    has: (name) => Object.hasOwn(read(), name),
    value: read,
  }
}

function isNamespace(value: unknown): value is Namespace {
  return typeof value === 'object' && value !== null && 'get' in value && typeof value.get === 'function'
}
