/** The rows of `tests/golden/stackstorm` in which svc differs on purpose, with the reason. */
import type { GoldenFile } from './players.ts'

const accident = 'an accident of the incumbent: an error of its program, not a rule'
const large = 'whole numbers of any size are exact; the database of the incumbent ends at 8 bytes'
const outside = 'an entry point lies in its pack; an action local-shell-cmd runs a program elsewhere'
const slash = 'a name is one part of an address and of a path'
const kinder = 'svc takes what is clear'
const keysAreText = 'keys are text'
const beyond = 'svc reads such a file'
const halves = 'YAML holds JSON: what programs write as halves of a character, also alone, reads back'

/** File → row → reason. */
export const onPurpose: Readonly<Partial<Record<GoldenFile, Readonly<Record<string, string>>>>> = {
  yaml: { yaml_string_093: halves, yaml_string_094: halves },
  metadata: {
    g_action_006: 'older names of runners are known',
    g_action_009: outside,
    g_action_014: 'no entry point is no text "None"',
    g_action_027: slash,
    g_action_034: 'files that begin with a dot are hidden, and not read as metadata',
    g_action_036: 'file systems end names at 255 characters',
    g_action_053: 'a date is text',
    g_action_054: accident,
    g_action_056: accident,
    g_action_files_004: beyond,
    g_action_files_008: beyond,
    g_yaml_in_action_019: large,
    g_yaml_in_action_020: large,
    g_yaml_in_action_021: large,
    g_yaml_in_action_026: accident,
    g_yaml_in_action_040: keysAreText,
    g_yaml_in_action_041: keysAreText,
    g_yaml_in_action_042: keysAreText,
    g_parameters_021: kinder,
    g_parameters_040: kinder,
    g_parameters_055: 'a parameter that is not immutable needs no default',
    g_parameters_063: accident,
    g_parameters_075: 'svc checks formats',
    g_parameters_076: 'svc checks formats',
    g_parameters_082: 'no number is a multiple of 0; newer versions of the incumbent refuse it too',
    g_sensor_010: 'svc polls as often as the sensor says',
    g_sensor_011: 'svc polls as often as the sensor says',
    g_sensor_018: accident,
    g_rule_073: 'null is the default, and a rule is off by default',
    g_rule_085: accident,
    g_rule_089: accident,
    g_rule_090: 'a date that is none never comes; svc says so when the rule is written',
    g_policy_021: 'an action may have several policies of one type',
    g_config_009: 'an empty schema is one',
    g_config_016: 'an attribute without a type takes any value',
    g_config_019: '5.0 is a whole number',
    g_config_047: accident,
    g_config_088: 'a secret attribute may be stored without encryption',
    g_config_094: 'defaults may be templates',
    g_config_102: large,
    g_config_104: 'svc checks formats',
    g_pack_031: kinder,
    g_pack_042: kinder,
    g_pack_058: 'a pack has one reference, also for its content; with the name of the folder in ref, both agree',
    g_pack_074: kinder,
    g_pack_077: kinder,
  },
}
