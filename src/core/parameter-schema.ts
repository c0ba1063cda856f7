/** The schema of one parameter, as actions, runner types, triggers and policy types declare it (contract 02, 2.4). */
import { record, Type, type ParameterSchema } from '../lib/schema/index.ts'

export const ParameterSchemaRecord = record(
  'ParameterSchema',
  Type.Unsafe<ParameterSchema>({
    type: 'object',
    description: 'JSON schema draft 4; `required` is a boolean of the parameter itself.',
    properties: {
      type: { type: 'string' },
      description: { type: 'string' },
      default: { description: 'Value when the caller gives none.' },
      required: { type: 'boolean' },
      enum: { type: 'array', items: {} },
      immutable: { type: 'boolean', description: 'The value cannot be overridden.' },
      secret: { type: 'boolean', description: 'The value is masked in answers, output and logs.' },
      position: { type: 'integer', description: 'Place among the positional arguments of a command, from 0.' },
    },
    additionalProperties: true,
  }),
  { example: { type: 'string', description: 'Command to run.', required: true } },
)
