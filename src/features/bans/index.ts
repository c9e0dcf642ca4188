/** Bans a key after too many refusals. */
import { isUsed } from '../../core/config/feature.ts'
import type { Feature } from '../../core/feature.ts'
import { declaration } from './declaration.ts'
import { penalties } from './part.ts'
import { listedBy, listsBans, withBanList } from './watch.ts'

export type { PenaltyOptions } from './fields.ts'

/** Lets policies have a `penalty`, also those of a live document. */
export const bans = (): Feature => ({
  ...declaration,
  compile({ config, log }) {
    if (!isUsed(config, ({ penalty }) => penalty)) return {}
    const options = { isListed: listedBy(config), namespace: config.namespace, log }
    return {
      lua: [penalties],
      ...(listsBans(config) && {
        watch: (inner, database) => withBanList(inner, database, options),
      }),
    }
  },
})
