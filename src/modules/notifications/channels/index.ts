/** All channels. To add one, write its file and list it here. */
import type { Channel } from './channel.ts'
import { discord } from './discord.ts'
import { email } from './email.ts'
import { mattermost } from './mattermost.ts'
import { ntfy } from './ntfy.ts'
import { pagerduty } from './pagerduty.ts'
import { slack } from './slack.ts'
import { teams } from './teams.ts'
import { webhook } from './webhook.ts'

export const channels: readonly Channel[] = [slack, teams, mattermost, discord, ntfy, pagerduty, email, webhook]

export const findChannel = (kind: string): Channel | undefined => channels.find((channel) => channel.kind === kind)

export {
  readAppriseUrl,
  SendFailure,
  shortened,
  UrlProblem,
  type Channel,
  type Level,
  type Notice,
  type SendTools,
  type Settings,
} from './channel.ts'
export { cutStart, oneLine, plainLines } from './text.ts'
