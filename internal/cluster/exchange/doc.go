// Package exchange carries questions and answers between the nodes of a cluster: commands for the node that decides, the index of reads, and records of what has ended. Package
// link gives it connections whose peers have proved that they belong to the cluster.
//
// # A connection
//
// One node asks and the other answers, many questions at a time and in any order. Each message has a length of four bytes, a number of eight bytes, a
// byte for its kind, and a body. Messages that are written at the same time leave in one packet.
//
// # Bounds
//
// A message has at most 32 MiB. A peer that takes no data for 5 seconds loses the connection, and an answer is awaited for 5 seconds. At most 4,096 questions of
// one connection, with 128 MiB together, are answered at a time; further ones wait.
//
// # What is lost
//
// When a connection ends, callers that wait for an answer get ErrLost: the other node may have received the question or not.
package exchange
