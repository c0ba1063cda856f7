import { joinScopes, type HostFunction, type Namespace, type TemplateScope } from '../lib/template/index.ts'
import type { PackConfig } from './pack-content.ts'

/** Secrets that templates have been given, to be hidden wherever they come out again; added to as they are read. */
export type ReadSecrets = unknown[]

/**
 * `action_context`, `config_context`, and of the datastore `svckv`, `system` and `_user`; everything is read only when a
 * template asks for it.
 *
 * @param datastore `svckv` and `decrypt_kv`
 * @param config of the pack of the action; asked at most once
 * @param secrets gets what is decrypted, and what is secret in a configuration that was asked for
 */
export function parameterScope(
  datastore: TemplateScope,
  context: Record<string, unknown>,
  config: () => PackConfig,
  secrets: ReadSecrets,
): TemplateScope {
  return joinScopes(
    {
      variables: {
        ...itemScopes(datastore),
        action_context: context,
        config_context: configContext(config, secrets),
      },
    },
    watchDecryption(datastore, (plain) => secrets.push(plain)),
  )
}

/** @param onDecryption called with what is decrypted */
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

function configContext(config: () => PackConfig, secrets: ReadSecrets): Namespace {
  let values: Record<string, unknown> | undefined
  const read = (): Record<string, unknown> => {
    if (values === undefined) {
      const resolved = config()
      secrets.push(...resolved.secrets)
      ;({ values } = resolved)
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
