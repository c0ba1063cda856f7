/** YAML 1.1 as Python's readers parse it, except that the single letters `y` and `n` are text. */
import { boolYaml11Tag, defineScalarTag, NOT_RESOLVED, YAML11_SCHEMA } from 'js-yaml'

const boolTag = defineScalarTag('tag:yaml.org,2002:bool', {
  implicit: true,
  implicitFirstChars: boolYaml11Tag.implicitFirstChars,
  resolve: (source, isExplicit, tagName) =>
    source.length === 1 ? NOT_RESOLVED : boolYaml11Tag.resolve(source, isExplicit, tagName),
  identify: (data) => typeof data === 'boolean',
})

export const pythonYamlSchema = YAML11_SCHEMA.withTags(boolTag)
