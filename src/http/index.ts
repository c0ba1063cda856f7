export { createAboutRoutes } from './about.ts'
export { createAdmission, surplusOf } from './admission.ts'
export { createHttpApp } from './app.ts'
export { allRights, openAccess, type AccessControl, type LastingAnswer } from './authenticate.ts'
export { aboutCaller, type Caller } from './caller.ts'
export { admitOperators, listenOnControlSocket, type ControlSocket } from './control-socket.ts'
export { readFileLimit, shareFiles } from './file-limit.ts'
export { readIdentities, renewIdentity } from './identities.ts'
export { jsonTypeOf } from './json.ts'
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
export { listen, type Listener } from './listeners.ts'
export { createOriginPolicy, type OriginPolicy } from './origin.ts'
export { createPeers, type Peers } from './peers.ts'
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
export { createHandshakeReport, readTlsIdentity } from './tls.ts'
