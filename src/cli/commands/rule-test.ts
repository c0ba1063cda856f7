/** `svc rule test`, also called `svc-rule-tester`: tests whether a rule matches, without running anything (contract 05, 5.12). */
import { CliCommand } from '../command.ts'
import { recordIn, toObject, type ApiResponse } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, HttpFailure, NotFound } from '../failures.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { printable, type Json } from '../output/print.ts'
import { readDefinition } from '../resources.ts'
import { maskSecretsOf } from '../rule-secrets.ts'
import { withProgramSession } from '../operator-session.ts'
import type { CommandContext, Session } from '../session.ts'
import { describeDetails, describeRuleOutcome } from '../rule-outcome.ts'

interface TestFlags extends CommonFlags {
  rule?: string
  ruleRef?: string
  triggerInstance?: string
  triggerInstanceId?: string
}

export function createRuleTestCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('test'))
    .description('Test whether a rule matches a trigger instance. Nothing is run.')
    .option('--rule <file>', 'rule definition, .yaml or .json')
    .option('--rule-ref <ref>', 'rule on the server: reference or id')
    .option('--trigger-instance <file>', 'trigger instance, .yaml or .json: {trigger: <reference>, payload: {...}}')
    .option('--trigger-instance-id <id>', 'id of a trigger instance on the server')
    .notes(
      'The command needs a rule and a trigger instance. It prints the criterion that failed, or the parameters that the action would get. The server runs the test with its datastore.',
      'The exit code is 0 when the rule matches, and 1 when it does not. If the rule matches but its parameters are invalid for the action, the command prints the problem and exits with 0.',
      'Also called svc-rule-tester. By that name, --config-file is that of the server, and needs no login on its machine.',
    )
    .examples(
      'svc rule test --rule on_order.yaml --trigger-instance order.yaml',
      'svc rule test --rule-ref default.on_order --trigger-instance-id 6000000000000000000000aa',
    )
    .sample('order.yaml', 'trigger: core.svc.webhook\npayload: {body: {kind: order, id: 3}}')
    .action((flags: TestFlags) =>
      withProgramSession('svc-rule-tester', context, flags, (session) => testRule(session, flags)),
    )
}

async function testRule(session: Session, flags: TestFlags): Promise<number> {
  const rule = oneOf(['--rule', flags.rule], ['--rule-ref', flags.ruleRef])
  const instance = oneOf(
    ['--trigger-instance', flags.triggerInstance],
    ['--trigger-instance-id', flags.triggerInstanceId],
  )
  const body: Json = {}
  if (rule === '--rule') {
    const definition = await readDefinition(flags.rule ?? '')
    await maskSecretsOf(session, definition)
    body['rule'] = definition
  } else {
    body['rule_ref'] = flags.ruleRef
  }
  if (instance === '--trigger-instance') body['trigger_instance'] = await readDefinition(flags.triggerInstance ?? '')
  else body['trigger_instance_id'] = flags.triggerInstanceId
  const answer = recordIn(await ask(session, body, flags))
  const matches = answer['matches'] === true
  if (session.form === 'human') await session.print(describe(answer, matches))
  else await session.printMachine(answer)
  return matches ? exitCodes.ok : exitCodes.failed
}

/** @throws NotFound */
async function ask(session: Session, body: unknown, { ruleRef, triggerInstanceId }: TestFlags): Promise<ApiResponse> {
  try {
    return await session.client.call('POST', '/rules/test', { body })
  } catch (error) {
    const code = error instanceof HttpFailure ? error.code : undefined
    if (code === 'CONTENT_NOT_FOUND' && ruleRef !== undefined) throw new NotFound('Rule', ruleRef)
    if (code === 'RESOURCE_NOT_FOUND' && triggerInstanceId !== undefined) {
      throw new NotFound('Trigger Instance', triggerInstanceId)
    }
    throw error
  }
}

/** Which of two options is given. @throws CliFailure when that is not one of them */
function oneOf(...options: readonly [name: string, value: string | undefined][]): string {
  const [given, ...more] = options.filter(([, value]) => value !== undefined)
  if (given !== undefined && more.length === 0) return given[0]
  const names = options.map(([name]) => name).join(' or ')
  throw new CliFailure(`${given === undefined ? 'Give' : 'Give only one of'} ${names}.`, exitCodes.usage)
}

function describe(answer: Json, matches: boolean): string {
  const { parameters, problem, payload_reduced: reduced } = answer
  const verdict = toObject(answer['verdict'])
  const isNews = typeof problem === 'string' && problem !== verdict['reason']
  const parts = [
    describeRuleOutcome(verdict),
    ...(parameters === undefined ? [] : [`Parameters of the action${describeDetails(toObject(parameters))}`]),
    ...(isNews ? [`${matches ? 'The rule would not start the action: ' : ''}${printable(problem)}\n`] : []),
    ...(typeof reduced === 'string' ? [`${printable(reduced)}\n`] : []),
    matches ? '=== RULE MATCHES ===\n' : '=== RULE DOES NOT MATCH ===\n',
  ]
  return parts.join('\n')
}
