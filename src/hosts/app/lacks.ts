import { type Lack, needOrigin } from '../../core/config/host.ts'

/** An app answers requests itself. */
export const ofApp: Lack = [needOrigin, 'only the gateway has an origin to call in parallel']
