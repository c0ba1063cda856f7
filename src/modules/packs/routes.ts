/** Endpoints of packs and their files (contract 02, 2.8). */
import { contentNotFound } from '../../core/errors.ts'
import { isId } from '../../core/ids.ts'
import { packResource, type Resource } from '../../core/permissions.ts'
import { allPages, arrange, idQuery, listEndpoint, listReply, route, textFilter, type Route } from '../../http/index.ts'
import { Type } from '../../lib/schema/index.ts'
import type { Configs } from './configs.ts'
import type { PackStore } from './store.ts'
import { packAttributes, PackFileText, PackView, PartialPack, type PackRecord } from './types.ts'
import type { VirtualenvBuilder } from './environments.ts'
import { packFile, packFileTexts } from './views.ts'

const DEFAULT_LIMIT = 100

const binary = Type.String({ format: 'binary' })

export function createPackRoutes({
  store,
  configs,
  virtualenvs,
  maxPageSize,
}: {
  store: PackStore
  configs: Pick<Configs, 'problemOf'>
  virtualenvs: Pick<VirtualenvBuilder, 'examine'>
  maxPageSize: number
}): Route[] {
  /** @throws CONTENT_NOT_FOUND */
  function getPack(refOrId: string): PackRecord {
    const pack = (isId(refOrId) ? store.findPack(refOrId) : undefined) ?? store.findPackByRef(refOrId)
    if (pack === undefined) throw contentNotFound(refOrId)
    return pack
  }

  async function viewOf(pack: PackRecord): Promise<PackRecord> {
    const problem = configs.problemOf(pack.ref)
    const view = problem === undefined ? pack : { ...pack, config_problem: problem }
    const state = await virtualenvs.examine(pack.ref, pack.path)
    if (state === undefined || (state.missing.length === 0 && state.problem === undefined)) return view
    return { ...view, python_environment: state }
  }

  const resource = ({ params }: { params: { ref: string } }): Resource => packResource(getPack(params.ref).ref)

  return [
    listEndpoint({
      path: '/packs',
      permission: 'pack_list',
      summary: 'Lists packs by reference.',
      record: PartialPack,
      query: {
        ref: { type: 'string', description: 'Only the pack with this reference.' },
        name: { type: 'string', description: 'Only packs with this name.' },
        ...idQuery,
      },
      page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
      attributes: { known: packAttributes, excludable: ['files'], always: ['id', 'ref'] },
      sort: ['id', 'ref', 'name'],
      async find(request) {
        const { query, page, sort } = request
        const filter = { ref: textFilter(query, 'ref'), name: textFilter(query, 'name') }
        const found =
          query.id !== undefined || sort.length > 0
            ? arrange(store.listPacks(filter, allPages), request)
            : { records: store.listPacks(filter, page), total: store.countPacks(filter) }
        const records: PackRecord[] = []
        for (const pack of found.records) records.push(await viewOf(pack))
        return { records, total: found.total }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/packs/:ref_or_id',
      permission: 'pack_view',
      resource: ({ params }) => packResource(getPack(params.ref_or_id).ref),
      summary: 'Gets one pack.',
      response: PackView,
      failures: [404],
      handler: ({ params }) => viewOf(getPack(params.ref_or_id)),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/packs/views/files/:ref',
      permission: 'pack_view',
      resource,
      summary: 'Gets the text files of a pack, except files that are too large.',
      response: Type.Array(PackFileText),
      failures: [404],
      async handler({ params }) {
        const files: PackFileText[] = []
        for await (const file of packFileTexts(getPack(params.ref).path)) files.push(file)
        return listReply(files)
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/packs/views/file/:ref/icon.png',
      permission: 'authenticated',
      summary: 'Gets the icon of a pack.',
      response: binary,
      mediaType: 'image/png',
      otherResponses: { 304: {} },
      failures: [404],
      handler: ({ params, headers }) => packFile(getPack(params.ref).path, 'icon.png', headers),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/packs/views/file/:ref/*file_path',
      permission: 'pack_view',
      resource,
      summary: 'Gets one file of a pack.',
      headers: {
        'If-None-Match': 'The ETag of the cached file.',
        'If-Modified-Since': 'The Last-Modified of the cached file.',
      },
      answerHeaders: { ETag: 'Changes with the file.', 'Last-Modified': 'Modification time of the file.' },
      response: binary,
      mediaType: 'application/octet-stream',
      otherResponses: { 304: {} },
      failures: [400, 404],
      handler: ({ params, headers }) => packFile(getPack(params.ref).path, params.file_path, headers),
    }),
  ]
}
