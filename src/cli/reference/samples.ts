/** Sample files that several help texts show. */
import type { ExampleFile } from '../command.ts'

/** A rule that runs a command for each order that a webhook receives. */
export const onOrder: ExampleFile = {
  name: 'on_order.yaml',
  text: `name: on_order
enabled: true
trigger: {type: core.svc.webhook, parameters: {url: orders}}
criteria:
  trigger.body.kind: {type: equals, pattern: order}
action:
  ref: core.local
  parameters: {cmd: echo "order $ID", env: {ID: "{{ trigger.body.id }}"}}`,
}
