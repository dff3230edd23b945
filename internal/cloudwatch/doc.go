// Package cloudwatch answers the clients of Amazon CloudWatch that read the metrics of the service: GetMetricData, GetMetricStatistics and ListMetrics in the
// namespace AWS/GameLift, from the kept series. It speaks the three protocols of these clients: Smithy RPC v2 with CBOR, JSON 1.0 and AWS Query.
package cloudwatch
