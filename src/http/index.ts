export { allRights, openAccess, type AccessControl, type LastingAnswer } from './authenticate.ts'
export { adviceOnCredentials } from './dialect.ts'
export { createBasePath } from './base-path.ts'
export { aboutCaller, type Caller } from './caller.ts'
export { contentAt, contentRoutes, createContentChanges, type ContentCaller, type ContentChanges } from './content.ts'
export { admitOperators } from './control-socket.ts'
export { isTagged } from './entity-tag.ts'
export { shareFilesOf } from './file-limit.ts'
export { readIdentities } from './identities.ts'
export { formType } from './body.ts'
export { jsonTypeOf, parseJsonBody, writeJsonInTurns, writeStoredJson } from './json.ts'
export {
  arrayOf,
  attributeQuery,
  flagFilter,
  isNullFilter,
  jsonReply,
  listEndpoint,
  listReply,
  pageHeaders,
  pageQuery,
  idQuery,
  allPages,
  arrange,
  parseAttributes,
  parseItems,
  parsePage,
  parsePlace,
  parseSort,
  parseTime,
  placeQuery,
  seesSecrets,
  showSecretsQuery,
  slicePage,
  textFilter,
  type AttributeOptions,
  type Found,
  type ListRequest,
  type Page,
  type Place,
  type Projection,
  type SortField,
} from './list.ts'
export { MAX_SOURCE_BYTES } from './answers.ts'
export { createOriginPolicy, originSettings, senderOf, type OriginPolicy } from './origin.ts'
export { createPeers, peersOptions, type Peers } from './peers.ts'
export type { KeyedRequest, ReadyAnswer, RequestLedger } from './repeats.ts'
export {
  Reply,
  route,
  surfaces,
  type ApiRequest,
  type EventSink,
  type JsonRoute,
  type Principal,
  type QueryParameter,
  type QueryValue,
  type RawRequest,
  type Rights,
  type Route,
  type Surface,
} from './route.ts'
export { frame } from './sse.ts'
export { startServer } from './server.ts'
export { readTlsIdentity } from './tls.ts'
