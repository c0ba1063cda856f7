/** Plans the execution and the rule enforcement of one rule for one trigger instance (contract 05, 5.7). */
import { merge, type Unit } from '../../../db/index.ts'
import { isAppError, withSentence, type AppError } from '../../../core/errors.ts'
import { newId } from '../../../core/ids.ts'
import { textLengthOf } from '../../../core/template-values.ts'
import { CONFIG_SECRETS, parameterScope, type ReadSecrets } from '../../../core/parameter-scope.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import type { TemplateThread, Turn } from '../../../core/rendering/index.ts'
import type { TemplateScope } from '../../../lib/template/index.ts'
import { formatMicros, nowMicros } from '../../../core/time.ts'
import type { Actions } from '../../actions/index.ts'
import type { ActionRecord } from '../../actions/types.ts'
import type { Executions } from '../../executions/index.ts'
import type { Traces } from '../../traces/index.ts'
import type { OpenedInstance, TriggerInstance } from '../../triggers/types.ts'
import type { CompiledRule } from './bindings.ts'
import type { RuleView } from './evaluate.ts'
import { renderRuleParameters } from './render.ts'
import type { CompiledRunning } from '../running.ts'
import type { EnforcementStore } from './store.ts'
import type { Overlap } from '../../executions/types.ts'
import type { Rule, RuleEnforcement } from '../types.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'
import type { PackConfigs } from '../../executions/ports.ts'
import type { Rights } from '../../../http/index.ts'
import type { Scope } from '../../../core/permissions.ts'

export interface PlannedEnforcement {
  enforcement: RuleEnforcement
  /** The execution, which can have failed before it started; undefined: none was created. */
  executionId: string | undefined
  unit: Unit
}

/**
 * Maximum length, in UTF-16 units, of the parameters of all executions of one trigger instance. svc keeps them in
 * memory and writes them in one transaction: about 10 ms for a megabyte.
 */
const MAX_PARAMETERS_LENGTH = 64 * 1024 * 1024

/** Where a chain of rules that start each other is cut: when it exceeds both. 0: never. */
export interface CascadeLimits {
  /** `rules.max_depth` */
  maxDepth: number
  /** `rules.max_cascade`: executions by rules in one trace. */
  maxCascade: number
}

/** Executions of a rule with `overlap` that have not ended. */
const MAX_OPEN_RUNS = 100

/** What came of a rule that matches: an execution, a reason why it failed, or why there is none. */
interface Outcome {
  executionId?: string
  reason?: string
  skipped?: string
}

type RunningPart = Partial<Pick<Parameters<Executions['plan']>[0], 'timeout' | 'delayMs' | 'running'>>

type Planned = Outcome & { unit?: Unit }

/** UTF-16 units left for the parameters of the executions of one trigger instance. */
export interface ParameterBudget {
  left: number
}

export const createParameterBudget = (): ParameterBudget => ({ left: MAX_PARAMETERS_LENGTH })

/** The author of a rule, if its templates must not read the secrets of configurations. */
export type StrangerOf = (rule: Pick<Rule, 'context' | 'metadata_file'>) => string | undefined

/** Rules of packs are a part of what the administrator has installed, like the defaults of their actions. */
export function createStrangerOf(
  rightsOf: (user: string, scopes?: readonly Scope[]) => Pick<Rights, 'may'>,
  systemUser: string,
): StrangerOf {
  return ({ context: { user, scopes }, metadata_file: file }) =>
    (user === systemUser && file !== undefined) || rightsOf(user, scopes).may(CONFIG_SECRETS) ? undefined : user
}

export interface Enforcer {
  /**
   * Plans the enforcement of a rule that matches.
   *
   * @param view what the rule sees of the instance
   * @param budget of the trigger instance; reduced by the parameters
   */
  plan(
    compiled: CompiledRule,
    instance: OpenedInstance,
    view: RuleView,
    budget: ParameterBudget,
  ): Promise<PlannedEnforcement>
  /** Plans the failed enforcement of a rule whose criteria could not be compared. @param reason why not */
  planFailure(rule: Rule, instance: TriggerInstance, reason: string): PlannedEnforcement
}

/** Context of the execution of a rule, without the entries that svc adds to every context. */
export function contextOf(
  { id, ref, name, context: { scopes } }: Rule,
  instance: Pick<TriggerInstance, 'id' | 'trigger' | 'occurrence_time' | 'trace_id'>,
  traceTag: string,
): Record<string, unknown> {
  return {
    trigger_instance: { id: instance.id, trigger: instance.trigger, occurrence_time: instance.occurrence_time },
    rule: { id, ref, name },
    trace_context: { id_: instance.trace_id, trace_tag: traceTag },
    // The execution of a rule written with a scoped key is limited to the scopes of the key.
    ...(scopes === undefined ? {} : { scopes }),
  }
}

/**
 * Adds the execution context and the pack configuration of the action to the scope of a rule.
 *
 * @param scope for all templates of the rule
 * @param read receives the secrets that templates read
 * @param stranger see `parameterScope`
 */
export function scopeOfAction(
  scope: TemplateScope,
  { context, user, pack }: { context: Record<string, unknown>; user: string; pack: string },
  packConfigs: PackConfigs,
  read: ReadSecrets,
  stranger?: string,
): TemplateScope {
  const { scopes } = context as { scopes?: TemplateReader['scopes'] } // made by `contextOf`
  const reader = { user, ...(scopes === undefined ? {} : { scopes }) }
  return parameterScope(scope, { ...context, user, pack }, () => packConfigs.resolve(pack, reader), read, stranger)
}

const tooLong = `The rules of one trigger instance pass more than ${MAX_PARAMETERS_LENGTH} characters of action parameters. Pass the whole payload in fewer rules.`

export const actionMissing = (ref: string): string => `Action "${ref}" doesn't exist`

/** Rules wait for their turn: the engine processes one after the other. */
const turnOf = ({ context: { user } }: Pick<Rule, 'context'>): Turn => ({
  caller: `rules of ${user}`,
  isRequest: false,
})

/** Finds the action of a rule by its reference, never by its id. */
export function findRuleAction(actions: Actions, ref: string): ActionRecord | undefined {
  const action = actions.find(ref)
  return action?.ref === ref ? action : undefined
}

export function createEnforcer(deps: {
  store: EnforcementStore
  actions: Actions
  executions: Pick<Executions, 'plan' | 'openRunsOf'>
  traces: Traces
  packConfigs: PackConfigs
  templateThread: TemplateThread
  readonly strangerOf: StrangerOf
  systemUser: string
  cascade: CascadeLimits
}): Enforcer {
  const { store, actions, executions, traces, packConfigs, templateThread, strangerOf, systemUser, cascade } = deps

  const plan: Enforcer['plan'] = async (compiled, instance, view, budget) => {
    const { rule } = compiled
    const at = nowMicros()
    const member = { kind: 'rule', object_id: rule.id, ref: rule.ref } as const
    const trace = traces.plan(causedBy(instance, 'trigger_instance', instance.id), member, formatMicros(at))
    const depth = (instance.depth ?? 0) + 1
    const cut = whyCut(rule, instance, depth)
    const result = cut === undefined ? await planExecution(compiled, instance, view, budget, depth) : { reason: cut }
    const { enforcement, unit } = record(rule, instance, at, result)
    return {
      enforcement,
      executionId: result.executionId,
      unit: merge(trace.unit, result.unit, unit, cut === undefined ? undefined : cutUnit(rule, instance, depth)),
    }
  }

  async function planExecution(
    compiled: CompiledRule,
    instance: OpenedInstance,
    { scope, withheld }: RuleView,
    budget: ParameterBudget,
    depth: number,
  ): Promise<Planned> {
    const { rule, templates, running } = compiled
    const skipped = whySkipped(rule, running?.rules?.overlap)
    if (skipped !== undefined) return { skipped }
    const action = findRuleAction(actions, rule.action.ref)
    if (action === undefined) return { reason: actionMissing(rule.action.ref) }
    const context = contextOf(rule, instance, traces.tagOf(instance.trace_id) ?? '')
    let { parameters } = rule.action
    let failure: AppError | undefined
    const read: ReadSecrets = [...instance.secrets]
    try {
      try {
        const stranger = strangerOf(rule)
        const concerns = { context, user: systemUser, pack: action.pack }
        parameters = await renderRuleParameters(
          templateThread,
          turnOf(rule),
          parameters,
          templates,
          scopeOfAction(scope, concerns, packConfigs, read, stranger),
        )
      } catch (error) {
        const refusal = refusalIn(createSecretValues(instance.secrets)?.maskError(error) ?? error)
        failure = withheld === undefined ? refusal : withSentence(refusal, withheld.reason)
        if (!fitsUnrendered(action, parameters)) return { reason: failure.message }
      }
      const length = textLengthOf(parameters, budget.left)
      if (length > budget.left) return { reason: tooLong }
      budget.left -= length
      const planned = await executions.plan({
        action: action.ref,
        parameters,
        context,
        cause: causedBy(instance, 'rule', `${rule.id}:${instance.id}`),
        origin: compiled.origin(),
        triggerInstance: instance.id,
        depth,
        secrets: read,
        ...(running === undefined ? {} : runningPart(running)),
        ...(failure === undefined ? {} : { failure }),
      })
      const made = { executionId: planned.execution.id, unit: planned.unit }
      return planned.failure === undefined ? made : { ...made, reason: planned.failure.message }
    } catch (error) {
      return { reason: refusalIn(createSecretValues(instance.secrets)?.maskError(error) ?? error).message }
    }
  }

  /** @returns why the chain of rules that start each other ends here; undefined: it goes on */
  function whyCut({ ref }: Rule, { trace_id: trace }: TriggerInstance, depth: number): string | undefined {
    const { maxDepth, maxCascade } = cascade
    if (maxDepth === 0 || maxCascade === 0 || depth <= maxDepth) return undefined
    if (traces.countRules(trace, maxCascade) < maxCascade) return undefined
    return `Cut: rule "${ref}" is number ${depth} in a chain of rules that start each other (rules.max_depth is ${maxDepth}), and trace ${trace} has ${maxCascade} executions by rules (rules.max_cascade). Change the criteria of the rule so that it does not match what comes of its own action.`
  }

  /** @returns why no execution is created; undefined: one is */
  function whySkipped({ id }: Rule, overlap: Overlap | undefined): string | undefined {
    if (overlap === 'skip') {
      const [open] = executions.openRunsOf(id, 1)
      if (open === undefined) return undefined
      return `Execution ${open} of this rule has not ended, and the rule says "overlap: skip".`
    }
    if (overlap === undefined || executions.openRunsOf(id, MAX_OPEN_RUNS).length < MAX_OPEN_RUNS) return undefined
    return `${MAX_OPEN_RUNS} executions of this rule run or wait already: no more of them wait at once.`
  }

  /** Whether the action accepts the templates themselves as parameters of a failed execution. */
  function fitsUnrendered(action: ActionRecord, parameters: Record<string, unknown>): boolean {
    const runner = actions.findRunnerType(action.runner_type)
    if (runner === undefined) return false
    try {
      actions.check(action, runner, parameters, parameters)
      return true
    } catch (error) {
      refusalIn(error)
      return false
    }
  }

  function record(
    { id, ref, uid }: Rule,
    instance: TriggerInstance,
    at: number,
    { executionId, reason, skipped }: Outcome,
  ): { enforcement: RuleEnforcement; unit: Unit } {
    const enforcement: RuleEnforcement = {
      id: newId(at),
      trigger_instance_id: instance.id,
      ...(reason === undefined ? {} : { failure_reason: reason }),
      ...(skipped === undefined ? {} : { skip_reason: skipped }),
      ...(reason !== undefined || executionId === undefined ? {} : { execution_id: executionId }),
      rule: { ref, uid, id },
      enforced_at: formatMicros(at),
      status: reason !== undefined ? 'failed' : skipped !== undefined ? 'skipped' : 'succeeded',
    }
    return {
      enforcement,
      unit: {
        steps: [store.insert(enforcement)],
        facts: [{ name: 'rule.enforced', payload: enforcement }],
      },
    }
  }

  return {
    plan,
    planFailure: (rule, instance, reason) => ({
      ...record(rule, instance, nowMicros(), {
        reason: `Failed to match rule "${rule.ref}" against trigger instance "${instance.id}": There might be a problem with the criteria in rule ${rule.ref}: ${reason}`,
      }),
      executionId: undefined,
    }),
  }
}

const cutUnit = ({ ref }: Rule, { trace_id: id }: TriggerInstance, depth: number): Unit => ({
  steps: [],
  facts: [{ name: 'trace.cut', payload: { id, rule: ref, depth } }],
})

function runningPart({ timeout, delay, rules }: CompiledRunning): RunningPart {
  return {
    ...(timeout === undefined ? {} : { timeout }),
    ...(delay === undefined ? {} : { delayMs: Math.round(delay * 1000) }),
    ...(rules === undefined ? {} : { running: rules }),
  }
}

function causedBy(
  { trace_id }: TriggerInstance,
  type: 'trigger_instance' | 'rule',
  id: string,
): Parameters<Traces['plan']>[0] {
  return { kind: 'inherited', trace_id, caused_by: { type, id } }
}

/** The error as an AppError of kind `invalid`. Rethrows every other error, which is a defect of svc. */
export function refusalIn(error: unknown): AppError {
  if (isAppError(error) && error.kind === 'invalid') return error
  throw error
}
