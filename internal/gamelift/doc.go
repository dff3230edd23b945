// Package gamelift is the AWS front door: it lets unmodified AWS clients use Muster as if it were Amazon GameLift.
//
// A request is routed by its header or path, its signature is verified, its body is decoded into the SDK's own input
// type, and the model's constraints are checked; only then does an operation run. An operation is a method of [Service]
// with the signature of the SDK client's method, so the service can be called with or without a network. It translates
// its input to a command or a view of the engine and decides nothing.
package gamelift
