// Package exchange carries questions and answers between the nodes of a cluster: commands for the leader, the index for reads, and ended records.
// Package link provides connections whose peers have proved that they belong to the cluster.
//
// # A connection
//
// One node asks and the other answers, with many questions in flight and answers in any order. Each message has a length of four bytes, a number of
// eight bytes, a byte for its kind, and a body. Messages written at the same time are sent in one packet.
//
// # Bounds
//
// A message has at most 32 MiB. A connection whose peer accepts no data for 5 seconds is closed, and an answer is awaited for 5 seconds. At most
// 4,096 questions of one connection, with a total of 128 MiB, are answered at a time; further ones wait.
//
// # What is lost
//
// When a connection ends, callers that wait for an answer get ErrLost: the other node may or may not have received the question.
package exchange
