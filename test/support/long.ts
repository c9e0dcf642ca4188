/** True in `npm run test:long`, in which tests make more attempts and try every combination. */
export const isLong = process.env.TEST_LONG === '1'
