/**
 * Every endpoint × every kind of credential, and every endpoint × every role, made from the list of endpoints that the
 * server itself publishes: a new one without an entry here fails. What opens which endpoint stands here as contract 11 says
 * it (11.3, 11.4), not as the sources do.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { call, type Answer, type TestApp } from '../helpers/server.ts'
import { rounds } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import type { ErrorAnswer } from './support.ts'
import { permissionTypes } from '../../src/core/permissions.ts'

/** What the requests of the matrix are about; what they destroy is made anew. */
interface Objects {
  execution: string
  /** Of the type `core.svc.generic.inquiry`. */
  trigger: string
  /** Of the same type. */
  triggerInstance: string
  trace: string
  /** An API key of the administrator. */
  readonly apiKey: () => Promise<string>
  readonly token: () => Promise<string>
  readonly user: () => Promise<string>
  /** Path of an item of the datastore. */
  readonly key: () => Promise<string>
  /** Reference of a rule. */
  readonly rule: () => Promise<string>
  /** Reference of an alias. */
  readonly alias: () => Promise<string>
  /** Reference of a policy. */
  readonly policy: () => Promise<string>
  /** Of that rule. */
  ruleEnforcement: string
  /** About the execution. */
  notification: string
  role: string
  assignment: string
  /** Of an execution of `core.noop`. */
  inquiry: string
}

interface Entry {
  /** `public` answers anybody, `any` whoever has a valid credential, else the permission types that open it. */
  opens: 'public' | 'any' | 'administrator' | 'login' | readonly string[]
  /** Whether the system role that only looks may use it. */
  observer?: boolean
  readonly path: (objects: Objects) => string | Promise<string>
  body?: unknown
  /** An answer that never ends is cut after its status. */
  streams?: boolean
}

const fixed = (path: string) => () => path
const actionView = ['action_view', 'action_create', 'action_modify', 'action_delete', 'action_execute', 'action_all']
const executionView = ['action_view', 'action_execute', 'action_all']
const executionChange = ['action_execute', 'action_all']
const ruleView = ['rule_view', 'rule_create', 'rule_modify', 'rule_delete', 'rule_all']
const rule = {
  name: 'rule',
  pack: 'core',
  enabled: true,
  trigger: { type: 'core.svc.generic.inquiry' },
  action: { ref: 'core.noop' },
}
const packView = ['pack_view', 'pack_modify', 'pack_delete', 'pack_all']
const aliasView = [
  'action_alias_view',
  'action_alias_create',
  'action_alias_modify',
  'action_alias_delete',
  'action_alias_all',
]
const alias = { name: 'alias', pack: 'matrix', action_ref: 'core.noop', formats: ['do nothing'] }
const policy = {
  name: 'policy',
  pack: 'matrix',
  resource_ref: 'matrix.none',
  policy_type: 'action.concurrency',
  parameters: { threshold: 1 },
}
const looks = { observer: true }

/** A pack of the server, with its configuration. */
const packFiles: Readonly<Record<string, string>> = {
  'packs/matrix/pack.yaml': 'name: matrix\ndescription: d\nversion: 1.0.0\nauthor: a\n',
  'notifications/dead.yaml': 'name: dead\nchannel: webhook\nwebhook_url: http://127.0.0.1:1/\n',
  'packs/matrix/config.schema.yaml': 'place:\n  type: string\n',
  'packs/matrix/aliases/alias.yaml': 'name: alias\naction_ref: core.noop\nformats: [do nothing]\n',
  'packs/matrix/aliases/lasting.yaml': 'name: lasting\naction_ref: core.noop\nformats: [do little]\n',
  'packs/matrix/icon.png': 'a picture',
  'packs/matrix/sensors/watch.py': 'class Watch:\n    pass\n',
  'packs/matrix/sensors/watch.yaml': 'class_name: Watch\nentry_point: watch.py\nenabled: false\n',
  'configs/matrix.yaml': 'place: here\n',
}

/** A trigger by that name, so that its uid is known before it is made. */
const timer = {
  pack: 'matrix',
  name: 'weekly',
  type: 'core.svc.IntervalTimer',
  parameters: { delta: 1, unit: 'weeks' },
}
const timerDigest = createHash('md5').update(JSON.stringify(timer.parameters)).digest('hex')

const entries: Record<string, Entry> = {
  'POST /auth/v1/tokens': { opens: 'login', path: fixed('/auth/v1/tokens') },
  'POST /auth/v1/tokens/validate': { opens: 'any', path: fixed('/auth/v1/tokens/validate'), body: { token: 'x' } },
  'DELETE /auth/v1/tokens': { opens: 'administrator', path: fixed('/auth/v1/tokens?user=somebody') },
  // Of those with API keys, as all callers here: that there is no token to revoke is no matter of rights.
  'DELETE /auth/v1/tokens/current': { opens: 'any', path: fixed('/auth/v1/tokens/current') },
  'DELETE /auth/v1/tokens/{token}': {
    opens: 'administrator',
    path: async (objects) => `/auth/v1/tokens/${await objects.token()}`,
  },
  'GET /auth/v1/sso': { opens: 'public', path: fixed('/auth/v1/sso') },
  'GET /auth/v1/sso/request': { opens: 'public', path: fixed('/auth/v1/sso/request') },
  'POST /auth/v1/sso/callback': { opens: 'public', path: fixed('/auth/v1/sso/callback') },
  'GET /v1/service_registry/groups': { opens: 'administrator', path: fixed('/v1/service_registry/groups') },
  'GET /v1/service_registry/groups/{group_id}/members': {
    opens: 'administrator',
    path: fixed('/v1/service_registry/groups/api/members'),
  },
  'GET /v1': { opens: 'any', path: fixed('/v1/') },
  'GET /v1/user': { opens: 'any', path: fixed('/v1/user') },
  'GET /v1/openapi.json': { opens: 'public', path: fixed('/v1/openapi.json') },
  'GET /healthz': { opens: 'public', path: fixed('/healthz') },
  'GET /readyz': { opens: 'public', path: fixed('/readyz') },
  'GET /v1/metrics': { opens: 'administrator', path: fixed('/metrics') },
  'GET /v1/status': { opens: 'administrator', path: fixed('/v1/status') },
  'GET /v1/status/history': { opens: 'administrator', path: fixed('/v1/status/history') },
  'GET /v1/docs': { opens: 'public', path: fixed('/v1/docs') },
  'GET /v1/ui/{file}': { opens: 'public', path: fixed('/ui/index.html') },
  'GET /v1/docs/{file}': { opens: 'public', path: fixed('/v1/docs/start.js') },

  'GET /v1/actions': { opens: ['action_list'], ...looks, path: fixed('/v1/actions') },
  'GET /v1/actions/views/overview': { opens: ['action_list'], ...looks, path: fixed('/v1/actions/views/overview') },
  'GET /v1/actions/{ref_or_id}': { opens: actionView, ...looks, path: fixed('/v1/actions/core.noop') },
  'GET /v1/actions/views/parameters/{id}': {
    opens: actionView,
    ...looks,
    path: fixed('/v1/actions/views/parameters/core.noop'),
  },
  'GET /v1/actions/views/overview/{ref_or_id}': {
    opens: actionView,
    ...looks,
    path: fixed('/v1/actions/views/overview/core.noop'),
  },
  'GET /v1/actions/views/entry_point/{ref_or_id}': {
    opens: actionView,
    ...looks,
    path: fixed('/v1/actions/views/entry_point/core.noop'),
  },
  'GET /v1/packs': { opens: ['pack_list'], ...looks, path: fixed('/v1/packs') },
  'GET /v1/packs/index': { opens: ['pack_list'], ...looks, path: fixed('/v1/packs/index') },
  'POST /v1/packs/index/search': {
    opens: ['pack_search'],
    ...looks,
    path: fixed('/v1/packs/index/search'),
    body: { query: 'x' },
  },
  'GET /v1/packs/index/health': {
    opens: ['pack_views_index_health'],
    path: fixed('/v1/packs/index/health'),
  },
  'GET /v1/packs/{ref_or_id}': { opens: packView, ...looks, path: fixed('/v1/packs/matrix') },
  'POST /v1/packs/register': {
    opens: ['pack_register'],
    path: fixed('/v1/packs/register'),
    body: { packs: ['matrix'], types: ['alias'] },
  },
  'POST /v1/packs/install': { opens: ['pack_install'], path: fixed('/v1/packs/install'), body: { packs: ['none'] } },
  'POST /v1/packs/uninstall': {
    opens: ['pack_uninstall'],
    path: fixed('/v1/packs/uninstall'),
    body: { packs: ['none'] },
  },
  'GET /v1/packs/views/files/{ref}': { opens: packView, ...looks, path: fixed('/v1/packs/views/files/matrix') },
  'GET /v1/packs/views/file/{ref}/icon.png': {
    opens: 'any',
    path: fixed('/v1/packs/views/file/none/icon.png'),
  },
  'GET /v1/packs/views/file/{ref}/{file_path}': {
    opens: packView,
    ...looks,
    path: fixed('/v1/packs/views/file/matrix/no.json'),
  },
  // They hold what may be viewed.
  'GET /v1/configs': { opens: ['pack_list'], ...looks, path: fixed('/v1/configs') },
  'GET /v1/configs/{pack}': { opens: packView, ...looks, path: fixed('/v1/configs/matrix') },
  'PUT /v1/configs/{pack}': { opens: ['pack_config'], path: fixed('/v1/configs/matrix'), body: { place: 'here' } },
  'GET /v1/config_schemas': { opens: ['pack_list'], ...looks, path: fixed('/v1/config_schemas') },
  'GET /v1/config_schemas/{pack}': { opens: packView, ...looks, path: fixed('/v1/config_schemas/matrix') },
  'GET /v1/actionalias': { opens: ['action_alias_list'], ...looks, path: fixed('/v1/actionalias') },
  'GET /v1/actionalias/{ref_or_id}': {
    opens: aliasView,
    ...looks,
    path: fixed('/v1/actionalias/matrix.alias'),
  },
  'POST /v1/actionalias': {
    opens: ['action_alias_create', 'action_alias_all'],
    path: fixed('/v1/actionalias'),
    body: alias,
  },
  'PUT /v1/actionalias/{ref_or_id}': {
    opens: ['action_alias_modify', 'action_alias_all'],
    path: fixed('/v1/actionalias/matrix.alias'),
    body: alias,
  },
  'DELETE /v1/actionalias/{ref_or_id}': {
    opens: ['action_alias_delete', 'action_alias_all'],
    path: async (objects) => `/v1/actionalias/${await objects.alias()}`,
  },
  'POST /v1/actionalias/match': {
    opens: ['action_alias_match'],
    path: fixed('/v1/actionalias/match'),
    body: { command: 'do nothing' },
  },
  'GET /v1/actionalias/help': { opens: ['action_alias_help'], path: fixed('/v1/actionalias/help') },
  'POST /v1/aliasexecution': {
    opens: ['action_execute', 'action_all'],
    path: fixed('/v1/aliasexecution'),
    body: { name: 'matrix.lasting', format: 'do little', command: 'do little', user: 'ann', source_channel: 'ops' },
  },
  'POST /v1/aliasexecution/match_and_execute': {
    opens: ['action_execute', 'action_all'],
    path: fixed('/v1/aliasexecution/match_and_execute'),
    body: { command: 'do little', user: 'ann', source_channel: 'ops' },
  },
  'GET /v1/aliasexecution/{id}/reply': {
    opens: executionView,
    ...looks,
    path: ({ execution }) => `/v1/aliasexecution/${execution}/reply`,
  },

  'GET /v1/sensortypes': { opens: ['sensor_type_list'], ...looks, path: fixed('/v1/sensortypes') },
  'GET /v1/sensortypes/{ref_or_id}': {
    opens: ['sensor_type_view', 'sensor_type_modify', 'sensor_type_all'],
    ...looks,
    path: fixed('/v1/sensortypes/matrix.Watch'),
  },
  'GET /v1/sensortypes/{ref_or_id}/output': {
    opens: ['sensor_type_view', 'sensor_type_modify', 'sensor_type_all'],
    ...looks,
    path: fixed('/v1/sensortypes/matrix.Watch/output'),
  },
  'PUT /v1/sensortypes/{ref_or_id}': {
    opens: ['sensor_type_modify', 'sensor_type_all'],
    path: fixed('/v1/sensortypes/matrix.Watch'),
    body: { enabled: false },
  },

  'GET /v1/runnertypes': { opens: ['runner_type_list'], ...looks, path: fixed('/v1/runnertypes') },
  'GET /v1/runnertypes/{name_or_id}': {
    opens: ['runner_type_view', 'runner_type_modify', 'runner_type_all'],
    ...looks,
    path: fixed('/v1/runnertypes/noop'),
  },
  'PUT /v1/runnertypes/{name_or_id}': {
    opens: ['runner_type_modify', 'runner_type_all'],
    path: fixed('/v1/runnertypes/noop'),
    body: { enabled: true },
  },

  'POST /v1/executions': {
    opens: ['action_execute', 'action_all'],
    path: fixed('/v1/executions'),
    body: { action: 'core.noop' },
  },
  'GET /v1/executions': { opens: ['execution_list'], ...looks, path: fixed('/v1/executions') },
  'GET /v1/executions/views/filters': {
    opens: ['execution_views_filters_list'],
    ...looks,
    path: fixed('/v1/executions/views/filters'),
  },
  'GET /v1/executions/{id}': { opens: executionView, ...looks, path: ({ execution }) => `/v1/executions/${execution}` },
  'GET /v1/executions/{id}/output': {
    opens: executionView,
    ...looks,
    path: ({ execution }) => `/v1/executions/${execution}/output`,
  },
  'GET /v1/executions/{id}/output/lines': {
    opens: executionView,
    ...looks,
    path: ({ execution }) => `/v1/executions/${execution}/output/lines`,
  },
  'GET /v1/executions/{id}/output/search': {
    opens: executionView,
    ...looks,
    path: ({ execution }) => `/v1/executions/${execution}/output/search?query=a`,
  },
  'GET /v1/executions/{id}/result': {
    opens: executionView,
    ...looks,
    path: ({ execution }) => `/v1/executions/${execution}/result`,
  },
  'GET /v1/executions/{id}/attribute/{name}': {
    opens: executionView,
    ...looks,
    path: ({ execution }) => `/v1/executions/${execution}/attribute/status`,
  },
  'GET /v1/executions/{id}/workflow/explain': {
    opens: executionView,
    ...looks,
    path: ({ execution }) => `/v1/executions/${execution}/workflow/explain`,
  },
  'GET /v1/executions/{id}/children': {
    opens: executionView,
    ...looks,
    path: ({ execution }) => `/v1/executions/${execution}/children`,
  },
  'GET /v1/executions/{id}/workflow': {
    opens: executionView,
    ...looks,
    path: ({ execution }) => `/v1/executions/${execution}/workflow`,
  },
  'GET /v1/executions/{id}/workflow/graph': {
    opens: executionView,
    ...looks,
    path: ({ execution }) => `/v1/executions/${execution}/workflow/graph`,
  },
  'DELETE /v1/executions/{id}': { opens: executionChange, path: ({ execution }) => `/v1/executions/${execution}` },
  'PUT /v1/executions/{id}': {
    opens: executionChange,
    path: ({ execution }) => `/v1/executions/${execution}`,
    body: { status: 'canceled' },
  },
  'POST /v1/executions/{id}/re_run': {
    opens: executionChange,
    path: ({ execution }) => `/v1/executions/${execution}/re_run`,
    body: {},
  },
  'GET /stream/v1/stream': { opens: ['stream_view'], ...looks, path: fixed('/stream/v1/stream'), streams: true },
  // Two are needed, stream_view and execution_view, so none of them opens it alone.
  'GET /stream/v1/executions/{id}/output': {
    opens: [],
    ...looks,
    path: ({ execution }) => `/stream/v1/executions/${execution}/output`,
    streams: true,
  },

  'GET /v1/traces': { opens: ['trace_list'], ...looks, path: fixed('/v1/traces') },
  // Its id is not known before the roles are.
  'GET /v1/traces/{id}': { opens: [], ...looks, path: ({ trace }) => `/v1/traces/${trace}` },
  'GET /v1/traces/{id}/components': { opens: [], ...looks, path: ({ trace }) => `/v1/traces/${trace}/components` },

  'GET /v1/apikeys': { opens: ['api_key_list'], ...looks, path: fixed('/v1/apikeys') },
  'POST /v1/apikeys': { opens: ['api_key_create'], path: fixed('/v1/apikeys'), body: {} },
  'GET /v1/apikeys/{id_or_key}': {
    opens: [],
    ...looks,
    path: async (objects) => `/v1/apikeys/${await objects.apiKey()}`,
  },
  'PUT /v1/apikeys/{id_or_key}': {
    opens: [],
    path: async (objects) => `/v1/apikeys/${await objects.apiKey()}`,
    body: { enabled: false },
  },
  'DELETE /v1/apikeys/{id_or_key}': { opens: [], path: async (objects) => `/v1/apikeys/${await objects.apiKey()}` },

  'GET /v1/triggertypes': { opens: ['trigger_list'], ...looks, path: fixed('/v1/triggertypes') },
  // What comes with the program cannot be changed, whoever asks; a refusal for want of rights comes before that.
  'POST /v1/triggertypes': {
    opens: ['trigger_all'],
    path: fixed('/v1/triggertypes'),
    body: { name: 'svc.generic.inquiry', pack: 'core' },
  },
  'GET /v1/triggertypes/{ref_or_id}': {
    opens: ['trigger_view', 'trigger_all'],
    ...looks,
    path: fixed('/v1/triggertypes/core.svc.generic.inquiry'),
  },
  'PUT /v1/triggertypes/{ref_or_id}': {
    opens: ['trigger_all'],
    path: fixed('/v1/triggertypes/core.svc.generic.inquiry'),
    body: {},
  },
  'DELETE /v1/triggertypes/{ref_or_id}': {
    opens: ['trigger_all'],
    path: fixed('/v1/triggertypes/core.svc.generic.inquiry'),
  },
  'GET /v1/triggers': { opens: ['trigger_list'], ...looks, path: fixed('/v1/triggers') },
  'POST /v1/triggers': {
    opens: ['trigger_all'],
    path: fixed('/v1/triggers'),
    body: { type: 'core.svc.generic.inquiry' },
  },
  'GET /v1/triggers/{id}': {
    opens: ['trigger_view', 'trigger_all'],
    ...looks,
    path: ({ trigger }) => `/v1/triggers/${trigger}`,
  },
  'PUT /v1/triggers/{id}': { opens: ['trigger_all'], path: ({ trigger }) => `/v1/triggers/${trigger}`, body: {} },
  'DELETE /v1/triggers/{id}': { opens: ['trigger_all'], path: ({ trigger }) => `/v1/triggers/${trigger}` },
  'GET /v1/triggerinstances': { opens: ['trigger_list'], ...looks, path: fixed('/v1/triggerinstances') },
  'GET /v1/triggerinstances/{id}': {
    opens: ['trigger_view', 'trigger_all'],
    ...looks,
    path: ({ triggerInstance }) => `/v1/triggerinstances/${triggerInstance}`,
  },
  'POST /v1/triggerinstances/{id}/re_emit': {
    opens: ['trigger_all'],
    path: ({ triggerInstance }) => `/v1/triggerinstances/${triggerInstance}/re_emit`,
    body: {},
  },

  'GET /v1/webhooks': { opens: ['webhook_list'], ...looks, path: fixed('/v1/webhooks') },
  'GET /v1/webhooks/{hook}': {
    opens: ['webhook_view', 'webhook_create', 'webhook_delete', 'webhook_all'],
    ...looks,
    path: fixed('/v1/webhooks/sample'),
  },
  'POST /v1/webhooks/{hook}': {
    opens: ['webhook_send', 'webhook_all'],
    path: fixed('/v1/webhooks/sample'),
    body: {},
  },
  'GET /v1/triggerinstances/{id}/explain': {
    opens: ['trigger_view', 'trigger_all'],
    ...looks,
    path: ({ triggerInstance }) => `/v1/triggerinstances/${triggerInstance}/explain`,
  },

  'GET /v1/rules': { opens: ['rule_list'], ...looks, path: fixed('/v1/rules') },
  'GET /v1/rules/views': { opens: ['rule_list'], ...looks, path: fixed('/v1/rules/views') },
  'GET /v1/rules/{ref_or_id}': {
    opens: ruleView,
    ...looks,
    path: async (objects) => `/v1/rules/${await objects.rule()}`,
  },
  'GET /v1/rules/views/{ref_or_id}': {
    opens: ruleView,
    ...looks,
    path: async (objects) => `/v1/rules/views/${await objects.rule()}`,
  },
  // Two are needed, one of them on the action, so none of them opens it alone.
  'POST /v1/rules': { opens: [], path: fixed('/v1/rules'), body: rule },
  'PUT /v1/rules/{ref_or_id}': {
    opens: [],
    path: async (objects) => `/v1/rules/${await objects.rule()}`,
    body: rule,
  },
  'DELETE /v1/rules/{ref_or_id}': {
    opens: ['rule_delete', 'rule_all'],
    path: async (objects) => `/v1/rules/${await objects.rule()}`,
  },
  'POST /v1/rules/test': {
    opens: ruleView,
    ...looks,
    path: async (objects) => {
      await objects.rule()
      return '/v1/rules/test'
    },
    body: { rule_ref: 'core.rule', trigger_instance: { trigger: 'core.svc.generic.inquiry', payload: {} } },
  },
  'POST /v1/workflows/graph': { opens: 'any', path: fixed('/v1/workflows/graph'), body: { tasks: {} } },
  'POST /v1/workflows/inspect': { opens: 'any', path: fixed('/v1/workflows/inspect'), body: { tasks: {} } },
  'GET /v1/criteriaoperators': { opens: 'any', path: fixed('/v1/criteriaoperators') },
  'GET /v1/ruletypes': { opens: 'any', path: fixed('/v1/ruletypes') },
  'GET /v1/ruletypes/{id}': { opens: 'any', path: fixed('/v1/ruletypes/standard') },
  'GET /v1/ruleenforcements': {
    opens: ['rule_enforcement_list', 'rule_list'],
    ...looks,
    path: fixed('/v1/ruleenforcements'),
  },
  'GET /v1/ruleenforcements/views': {
    opens: ['rule_enforcement_list', 'rule_list'],
    ...looks,
    path: fixed('/v1/ruleenforcements/views'),
  },
  'GET /v1/ruleenforcements/{id}': {
    opens: ruleView,
    ...looks,
    path: ({ ruleEnforcement }) => `/v1/ruleenforcements/${ruleEnforcement}`,
  },
  'GET /v1/ruleenforcements/views/{id}': {
    opens: ruleView,
    ...looks,
    path: ({ ruleEnforcement }) => `/v1/ruleenforcements/views/${ruleEnforcement}`,
  },

  // The actions of the pack core cannot be changed by anybody, and so are there for every caller.
  'POST /v1/actions': {
    opens: ['action_create', 'action_all'],
    path: fixed('/v1/actions'),
    body: { name: 'noop', pack: 'core', runner_type: 'noop' },
  },
  // Who may create an action may view it, and the copy goes to where its source is.
  'POST /v1/actions/{ref_or_id}/clone': {
    opens: ['action_create', 'action_all'],
    path: fixed('/v1/actions/core.noop/clone'),
    body: { dest_pack: 'core', dest_action: 'noop' },
  },
  'PUT /v1/actions/{ref_or_id}': {
    opens: ['action_modify', 'action_all'],
    path: fixed('/v1/actions/core.noop'),
    body: { name: 'noop', pack: 'core', runner_type: 'noop' },
  },
  'DELETE /v1/actions/{ref_or_id}': {
    opens: ['action_delete', 'action_all'],
    path: fixed('/v1/actions/core.noop'),
    body: {},
  },

  'GET /v1/inquiries': { opens: ['inquiry_list'], ...looks, path: fixed('/v1/inquiries') },
  'GET /v1/inquiries/{id}': {
    opens: ['inquiry_view'],
    ...looks,
    path: ({ inquiry }) => `/v1/inquiries/${inquiry}`,
  },
  'PUT /v1/inquiries/{id}': {
    opens: ['inquiry_respond', ...executionChange],
    path: ({ inquiry }) => `/v1/inquiries/${inquiry}`,
    body: { response: {} },
  },

  'GET /v1/jobs': { opens: ['rule_list'], ...looks, path: fixed('/v1/jobs') },
  'GET /v1/jobs/{ref_or_id}': {
    opens: ruleView,
    ...looks,
    path: async (objects) => `/v1/jobs/${await objects.rule()}`,
  },
  'GET /v1/timers': { opens: ['timer_list'], ...looks, path: fixed('/v1/timers') },
  'GET /v1/timers/{ref_or_id}': {
    opens: ['timer_view', 'timer_all'],
    ...looks,
    path: fixed(`/v1/timers/${timer.pack}.${timer.name}`),
  },
  'POST /v1/timers/preview': {
    opens: ['timer_list'],
    ...looks,
    path: fixed('/v1/timers/preview'),
    body: { type: timer.type, parameters: timer.parameters },
  },

  'GET /v1/policies': { opens: ['policy_list'], ...looks, path: fixed('/v1/policies') },
  'POST /v1/policies': { opens: ['policy_create'], path: fixed('/v1/policies'), body: { ...policy, pack: 'core' } },
  'GET /v1/policies/{ref_or_id}': {
    opens: ['policy_view', 'policy_modify', 'policy_delete', 'policy_all'],
    ...looks,
    path: async (objects) => `/v1/policies/${await objects.policy()}`,
  },
  'PUT /v1/policies/{ref_or_id}': {
    opens: ['policy_modify', 'policy_all'],
    path: async (objects) => `/v1/policies/${await objects.policy()}`,
    body: policy,
  },
  'DELETE /v1/policies/{ref_or_id}': {
    opens: ['policy_delete', 'policy_all'],
    path: async (objects) => `/v1/policies/${await objects.policy()}`,
  },
  'GET /v1/policytypes': { opens: ['policy_type_list'], ...looks, path: fixed('/v1/policytypes') },
  'GET /v1/policytypes/{ref_or_id}': {
    opens: ['policy_type_view', 'policy_type_all'],
    ...looks,
    path: fixed('/v1/policytypes/action.retry'),
  },

  // Every list of keys is open, and holds what may be viewed.
  'GET /v1/keys': { opens: 'any', path: fixed('/v1/keys') },
  'GET /v1/keys/{name}': {
    opens: ['key_value_pair_view', 'key_value_pair_set', 'key_value_pair_delete', 'key_value_pair_all'],
    ...looks,
    path: ({ key }) => key(),
  },
  'PUT /v1/keys/{name}': {
    opens: ['key_value_pair_set', 'key_value_pair_all'],
    path: ({ key }) => key(),
    body: { name: 'name', value: 'x' },
  },
  'DELETE /v1/keys/{name}': { opens: ['key_value_pair_delete', 'key_value_pair_all'], path: ({ key }) => key() },

  'GET /v1/rbac/permission_types': { opens: 'administrator', path: fixed('/v1/rbac/permission_types') },
  'GET /v1/rbac/permission_types/{type}': { opens: 'administrator', path: fixed('/v1/rbac/permission_types/action') },
  'GET /v1/rbac/roles': { opens: 'administrator', path: fixed('/v1/rbac/roles') },
  'GET /v1/rbac/roles/{name_or_id}': { opens: 'administrator', path: ({ role }) => `/v1/rbac/roles/${role}` },
  'GET /v1/rbac/role_assignments': { opens: 'administrator', path: fixed('/v1/rbac/role_assignments') },
  'GET /v1/rbac/role_assignments/{id}': {
    opens: 'administrator',
    path: ({ assignment }) => `/v1/rbac/role_assignments/${assignment}`,
  },
  'POST /v1/rbac/definitions/apply': { opens: 'administrator', path: fixed('/v1/rbac/definitions/apply'), body: {} },
  'POST /v1/executions/import': {
    opens: 'administrator',
    path: fixed('/v1/executions/import'),
    body: { executions: [] },
  },
  'POST /v1/executions/output/import': {
    opens: 'administrator',
    path: fixed('/v1/executions/output/import'),
    body: { output: [] },
  },
  'POST /v1/traces/import': { opens: 'administrator', path: fixed('/v1/traces/import'), body: { traces: [] } },
  'POST /v1/triggerinstances/import': {
    opens: 'administrator',
    path: fixed('/v1/triggerinstances/import'),
    body: { trigger_instances: [] },
  },
  'POST /v1/ruleenforcements/import': {
    opens: 'administrator',
    path: fixed('/v1/ruleenforcements/import'),
    body: { rule_enforcements: [] },
  },
  'POST /v1/backups': { opens: 'administrator', path: fixed('/v1/backups') },
  'GET /v1/backups': { opens: 'administrator', path: fixed('/v1/backups') },
  'GET /v1/notifications': {
    opens: ['execution_list'],
    ...looks,
    path: fixed('/v1/notifications'),
  },
  'GET /v1/notifications/{id}': {
    opens: executionView,
    ...looks,
    path: ({ notification }) => `/v1/notifications/${notification}`,
  },
  'POST /v1/notifications/{id}/replay': {
    opens: executionChange,
    path: ({ notification }) => `/v1/notifications/${notification}/replay`,
  },
  'GET /v1/notifications/destinations': { opens: 'administrator', path: fixed('/v1/notifications/destinations') },
  'GET /v1/notifications/destinations/{name}': {
    opens: 'administrator',
    path: fixed('/v1/notifications/destinations/dead'),
  },
  'POST /v1/notifications/destinations/{name}/test': {
    opens: 'administrator',
    path: fixed('/v1/notifications/destinations/dead/test'),
  },
  'POST /v1/purge/{kind}': {
    opens: 'administrator',
    path: fixed('/v1/purge/output'),
    body: { before: '2020-01-01T00:00:00Z' },
  },

  'GET /v1/users': { opens: 'administrator', path: fixed('/v1/users') },
  'POST /v1/users': { opens: 'administrator', path: fixed('/v1/users'), body: { name: 'somebody new' } },
  'GET /v1/users/{name}': { opens: 'administrator', path: async (objects) => `/v1/users/${await objects.user()}` },
  'PUT /v1/users/{name}': {
    opens: 'administrator',
    path: async (objects) => `/v1/users/${await objects.user()}`,
    body: { nicknames: {} },
  },
  'DELETE /v1/users/{name}': { opens: 'administrator', path: async (objects) => `/v1/users/${await objects.user()}` },
}

/** On which resource a role of the matrix has its one permission; others are granted without one. */
const resources: Record<string, string> = {
  runner_type: 'runner_type:noop',
  pack: 'pack:matrix',
  sensor_type: 'sensor_type:matrix:Watch',
  action: 'action:core:noop',
  action_alias: 'action_alias:matrix:alias',
  rule: 'rule:core:rule',
  rule_enforcement: 'rule_enforcement:none',
  execution: 'execution:6000000000000000000000aa',
  key_value_pair: 'key_value_pair:svckv.system:name',
  webhook: 'webhook:sample',
  timer: `timer:${timer.pack}:${timer.name}:${timerDigest}`,
  api_key: 'api_key:none',
  trace: 'trace:none',
  trigger: 'trigger:core:svc.generic.inquiry',
  policy_type: 'policy_type:action:retry',
  policy: 'policy:matrix:policy',
  inquiry: 'inquiry:none',
  user: 'user:somebody',
}

/** Contract 11, 11.2: the ones granted without a resource. */
const globals = new Set(
  (
    'pack_install pack_uninstall pack_create pack_register pack_config pack_search pack_views_index_health ' +
    'action_alias_match action_alias_help api_key_create policy_create stream_view inquiry_respond inquiry_view ' +
    'user_impersonate'
  ).split(' '),
)

const permissions = Object.entries(permissionTypes).flatMap(([type, names]) =>
  Object.keys(names).map((name) => ({ name, type, isGlobal: name.endsWith('_list') || globals.has(name) })),
)

interface Caller {
  name: string
  headers: Record<string, string>
  readonly may: (entry: Entry) => boolean
}

const folder = makeFolder()
let server: TestApp
let password: string
let objects: Objects
let published: string[]
const callers: Caller[] = []
/** So many of them ask every endpoint in the daily run too. */
let ofEveryEndpoint: number

const login = async (ttl?: number): Promise<{ id: string; token: string }> => {
  const answer = await call<{ id: string; token: string }>(
    `${server.urls.auth}/tokens`,
    'POST',
    ttl === undefined ? {} : { ttl },
    { Authorization: basicAuth('admin', password) },
  )
  return accepted(answer)
}

/** The body of an answer to something that was to be made. */
function accepted<T>({ status, body, text }: Answer<T>): T {
  if (status !== 201) throw new Error(`not accepted (${status}): ${text}`)
  return body
}

interface KeyAnswer {
  id: string
  key: string
}

let administrator: Record<string, string>

async function askFrom(parent: string): Promise<string> {
  const body = { action: 'core.ask', context: { parent: { execution_id: parent } } }
  const { id } = accepted(await server.call<{ id: string }>('POST', '/v1/executions', body, administrator))
  await waitFor('the inquiry', async () => {
    return (await server.call('GET', `/v1/inquiries/${id}`, undefined, administrator)).status === 200
  })
  return id
}

async function makeKey(more: Record<string, unknown>): Promise<KeyAnswer> {
  return accepted(await server.call<KeyAnswer>('POST', '/v1/apikeys', more, administrator))
}

/** The answer of an endpoint; a stream is not waited for. */
async function ask(key: string, headers: Record<string, string>): Promise<Answer<ErrorAnswer>> {
  const entry = entries[key]
  if (entry === undefined) throw new Error(`${key} has no entry`)
  const path = await entry.path(objects)
  const [method = ''] = key.split(' ')
  if (entry.streams !== true) return server.call<ErrorAnswer>(method, path, entry.body, headers)
  const abort = new AbortController()
  const response = await fetch(`${server.urls.api}${path}`, { headers, signal: abort.signal })
  const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const text = isEvents ? '' : await response.text()
  abort.abort()
  const body = (isEvents ? {} : JSON.parse(text)) as ErrorAnswer // the error of a refused stream
  return { status: response.status, headers: response.headers, body, text }
}

const role = (name: string, grant: string): void => {
  writeFileSync(join(folder.path, 'rbac', 'roles', `${name}.yaml`), `name: ${name}\npermission_grants:\n${grant}`)
  assign(name, name)
}

const assign = (user: string, roleName: string): void =>
  writeFileSync(join(folder.path, 'rbac', 'assignments', `${user}.yaml`), `username: ${user}\nroles: [${roleName}]\n`)

beforeAll(async () => {
  for (const name of ['roles', 'assignments']) mkdirSync(join(folder.path, 'rbac', name), { recursive: true })
  for (const [path, text] of Object.entries(packFiles)) {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true })
    writeFileSync(join(folder.path, path), text)
  }
  assign('admin', 'system_admin')
  assign('second-admin', 'admin')
  assign('observer', 'observer')
  for (const { name, type, isGlobal } of permissions) {
    role(name, `  - permission_types: [${name}]\n${isGlobal ? '' : `    resource_uid: '${resources[type] ?? ''}'\n`}`)
  }
  // The same permission on something else opens nothing.
  role('elsewhere', `  - permission_types: [action_all]\n    resource_uid: 'action:core:local'\n`)
  role('whole-pack', `  - permission_types: [action_all]\n    resource_uid: 'pack:core'\n`)
  role('pack-itself', `  - permission_types: [pack_all]\n    resource_uid: 'pack:core'\n`)

  server = await createTestApp({
    basePath: folder.path,
    settings: {
      'auth.enable': 'True',
      'rbac.enable': 'True',
      'rbac.backend': 'default',
      'stream.heartbeat': '3600',
      'notifications.destinations': 'nobody',
      'notifications.on': 'all',
    },
  })
  password = firstPassword(folder.path)
  administrator = { 'X-Auth-Token': (await login()).token }

  const { body: execution } = await server.call<{ id: string }>(
    'POST',
    '/v1/executions',
    { action: 'core.noop' },
    administrator,
  )
  await waitFor('the execution to end', async () => {
    const { body } = await server.call<{ status: string }>(
      'GET',
      `/v1/executions/${execution.id}`,
      undefined,
      administrator,
    )
    return body.status === 'succeeded'
  })
  const about = `/v1/notifications?execution=${execution.id}`
  const { body: notifications } = await server.call<{ id: string }[]>('GET', about, undefined, administrator)
  const [notification] = notifications
  const assignments = await server.call<{ id: string; user: string }[]>(
    'GET',
    '/v1/rbac/role_assignments?user=second-admin',
    undefined,
    administrator,
  )
  const traces = await server.call<{ id: string }[]>('GET', '/v1/traces', undefined, administrator)
  const triggers = await server.call<{ id: string }[]>(
    'GET',
    '/v1/triggers?type=core.svc.generic.inquiry',
    undefined,
    administrator,
  )
  accepted(await server.call('POST', '/v1/rules', rule, administrator))
  const dispatched = await server.call(
    'POST',
    '/v1/webhooks/svc',
    { trigger: 'core.svc.generic.inquiry', payload: { id: 'i', route: 'r' } },
    administrator,
  )
  accepted(await server.call('POST', '/v1/triggers', timer, administrator))
  const webhook = { type: 'core.svc.webhook', parameters: { url: 'sample' } }
  accepted(await server.call('POST', '/v1/triggers', webhook, administrator))
  const enforcement = await waitFor('the enforcement of the rule', async () => {
    const path = '/v1/ruleenforcements?rule_ref=core.rule'
    return (await server.call<{ id: string }[]>('GET', path, undefined, administrator)).body[0]
  })
  let users = 0
  objects = {
    execution: execution.id,
    trigger: triggers.body[0]?.id ?? '',
    triggerInstance: dispatched.headers.get('svc-trigger-instance-id') ?? '',
    trace: traces.body[0]?.id ?? '',
    ruleEnforcement: enforcement.id,
    notification: notification?.id ?? '',
    async rule() {
      const { status, text } = await server.call('POST', '/v1/rules', rule, administrator)
      if (status !== 201 && status !== 409) throw new Error(`not accepted (${status}): ${text}`)
      return 'core.rule'
    },
    async alias() {
      const { status, text } = await server.call('POST', '/v1/actionalias', alias, administrator)
      if (status !== 201 && status !== 409) throw new Error(`not accepted (${status}): ${text}`)
      return 'matrix.alias'
    },
    async policy() {
      const { status, text } = await server.call('POST', '/v1/policies', policy, administrator)
      if (status !== 201 && status !== 409) throw new Error(`not accepted (${status}): ${text}`)
      return 'matrix.policy'
    },
    role: 'observer',
    inquiry: await askFrom(execution.id),
    assignment: assignments.body[0]?.id ?? '',
    apiKey: async () => (await makeKey({})).id,
    token: async () => (await login()).id,
    async user() {
      users += 1
      const name = `made-${users}`
      accepted(await server.call('POST', '/v1/users', { name }, administrator))
      return name
    },
    async key() {
      const path = '/v1/keys/name'
      const { status, text } = await server.call('PUT', path, { name: 'name', value: 'x' }, administrator)
      if (status !== 200) throw new Error(`not accepted (${status}): ${text}`)
      return path
    },
  }

  const caller = async (name: string, may: Caller['may']): Promise<void> => {
    callers.push({ name, headers: { 'Svc-Api-Key': (await makeKey({ user: name })).key }, may })
  }
  const opensTo =
    (...held: string[]) =>
    (entry: Entry) =>
      entry.opens === 'any' || (Array.isArray(entry.opens) && entry.opens.some((name) => held.includes(name)))
  await caller('admin', () => true)
  await caller('second-admin', () => true)
  await caller('observer', (entry) => entry.opens === 'any' || entry.observer === true)
  await caller('nobody', opensTo())
  await caller('elsewhere', opensTo())
  await caller('whole-pack', opensTo('action_all'))
  await caller('pack-itself', opensTo())
  ofEveryEndpoint = callers.length
  for (const { name } of permissions) await caller(name, opensTo(name))

  const { body: document } = await server.call<{ paths: Record<string, Record<string, unknown>> }>(
    'GET',
    '/v1/openapi.json',
  )
  published = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
})

afterAll(async () => {
  await server.stop()
  folder.remove()
})

it('11.3 every endpoint has its entry, and every entry its endpoint', () => {
  expect(Object.keys(entries).toSorted()).toEqual(published.toSorted())
})

describe('01.8 every endpoint × every credential', () => {
  const refused: [name: string, make: () => Promise<Record<string, string>>][] = [
    ['none', () => Promise.resolve({})],
    ['an empty token', () => Promise.resolve({ 'X-Auth-Token': '' })],
    ['a wrong token', () => Promise.resolve({ 'X-Auth-Token': 'f'.repeat(32) })],
    ['a token of another server', () => Promise.resolve({ 'X-Auth-Token': foreignToken })],
    [
      'an expired token',
      async () => {
        const { token } = await login(1)
        const headers = { 'X-Auth-Token': token }
        await waitFor('the token to expire', async () => {
          return (await server.call('GET', '/v1/user', undefined, headers)).status === 401
        })
        return headers
      },
    ],
    [
      'a revoked token',
      async () => {
        const { token } = await login()
        const headers = { 'X-Auth-Token': token }
        expect((await server.call('DELETE', `/auth/v1/tokens/${token}`, undefined, headers)).status).toBe(204)
        return headers
      },
    ],
    ['a wrong API key', () => Promise.resolve({ 'Svc-Api-Key': 'k'.repeat(60) })],
    ['a disabled API key', async () => ({ 'Svc-Api-Key': (await makeKey({ enabled: false })).key })],
    [
      'a deleted API key',
      async () => {
        const { id, key } = await makeKey({})
        await server.call('DELETE', `/v1/apikeys/${id}`, undefined, administrator)
        return { 'Svc-Api-Key': key }
      },
    ],
    [
      'an API key of a disabled user',
      async () => {
        const name = await objects.user()
        const { key } = await makeKey({ user: name })
        const { status } = await server.call('PUT', `/v1/users/${name}`, { is_disabled: true }, administrator)
        expect(status).toBe(200)
        return { 'Svc-Api-Key': key }
      },
    ],
    [
      'an expired API key',
      async () => {
        const { id, key } = await makeKey({})
        const expiry = { expires_at: '2001-01-01T00:00:00Z' }
        expect((await server.call('PUT', `/v1/apikeys/${id}`, expiry, administrator)).status).toBe(200)
        return { 'Svc-Api-Key': key }
      },
    ],
    ['a token and an API key', async () => ({ ...administrator, 'Svc-Api-Key': (await makeKey({})).key })],
    ['a password where a token is needed', () => Promise.resolve({ Authorization: basicAuth('admin', password) })],
  ]
  const foreignToken =
    'eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJqdGkiOiI2MDAwMDAwMDAwMDAwMDAwMDAwMDAwYWEiLCJ1c2VyIjoiYWRtaW4ifQ.'

  it.each(refused)('%s', async (name, make) => {
    const headers = await make()
    const place = refused.findIndex(([other]) => other === name)
    // The daily run shares the endpoints out among the credentials; without any, each is asked.
    const asked = Object.entries(entries).filter(
      (_, i) => place === 0 || (i + place) % rounds({ daily: 4, full: 1 }) === 0,
    )
    for (const [key, entry] of asked) {
      const { status, body } = await ask(key, headers)
      const isOpen = entry.opens === 'public' || (entry.opens === 'login' && 'Authorization' in headers)
      const tellsPassword = !isOpen && body.faultstring.includes(password)
      expect({ key, name, is401: status === 401, tellsPassword }).toEqual({
        key,
        name,
        is401: !isOpen,
        tellsPassword: false,
      })
    }
  })

  it('a wrong password opens nothing', async () => {
    for (const key of Object.keys(entries).filter((_, i) => i % rounds({ daily: 4, full: 1 }) === 0)) {
      const { status } = await ask(key, { Authorization: basicAuth('admin', 'wrong') })
      expect({ key, is401: status === 401 }).toEqual({ key, is401: entries[key]?.opens !== 'public' })
    }
  })

  it.each(['header', 'query', 'cookie'] as const)('the right token, by %s', async (location) => {
    const { token } = await login()
    const { status, body } = await server.call<{ username: string; authentication: { location: string } }>(
      'GET',
      location === 'query' ? `/v1/user?x-auth-token=${token}` : '/v1/user',
      undefined,
      location === 'header'
        ? { 'X-Auth-Token': token }
        : location === 'cookie'
          ? { Cookie: `auth-token=${token}` }
          : {},
    )
    expect(status).toBe(200)
    expect(body).toMatchObject({ username: 'admin', authentication: { location } })
  })
})

describe('11.3, 11.4 every endpoint × every role', () => {
  const closed = Object.keys(entries).filter((key) => !['public', 'login'].includes(String(entries[key]?.opens)))
  it.each(closed.map((key, place): [string, number] => [key, place]))(
    '%s',
    async (key, place) => {
      const entry = entries[key]
      if (entry === undefined) throw new Error(`${key} has no entry`)
      const wrong: string[] = []
      // The daily run leaves out most of those whose one permission has nothing to do with the endpoint.
      const asking = callers.filter(
        ({ may }, index) =>
          index < ofEveryEndpoint ||
          (entry.opens !== 'any' && may(entry)) ||
          (index + place) % rounds({ daily: 25, full: 1 }) === 0,
      )
      for (const { name, headers, may } of asking) {
        const { status, body } = await ask(key, headers)
        // A refusal of rights, and not of what else was wrong with the request.
        const isDenied = status === 403 && body.code === 'PERMISSION_DENIED'
        if (status === 401 || isDenied === may(entry)) wrong.push(`${name}: ${status} ${body.faultstring}`)
      }
      expect(wrong).toEqual([])
    },
    240_000,
  )
})
