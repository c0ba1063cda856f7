/** Configuration of sensors. */
import type { CommonSettings, Config, PartitionRule } from '../../config/index.ts'
import type { ContainerSettings } from './run/container.ts'

export interface SensorsSettings extends ContainerSettings, CommonSettings {
  partition: PartitionRule
  /** `sensorcontainer.sensor_ref` */
  only: string
}

export function sensorsSettings(
  { sensorcontainer: options }: Pick<Config, 'sensorcontainer'>,
  common: CommonSettings,
): SensorsSettings {
  return {
    ...common,
    enabled: options.enable,
    node: options.sensor_node_name,
    partition: options.partition_provider,
    only: options.sensor_ref,
    respawnDelaySeconds: options.respawn_delay,
    maxRespawnDelaySeconds: options.max_respawn_delay,
  }
}
