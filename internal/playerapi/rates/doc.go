// Package rates limits the rate of calls: each class of calls has a token bucket for each player, address or credential. The login
// queue admits players at a steady rate, in the order in which they came.
package rates
