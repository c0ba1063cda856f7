/** The web client, at `/` of the API listener. It uses the public API alone, so nothing here knows what it shows. */
import type { Module } from '../../core/module.ts'
import { createFiles } from './files.ts'
import { createUiRoutes } from './routes.ts'

export function createUi(): Module {
  return { name: 'ui', routes: createUiRoutes(createFiles()) }
}
