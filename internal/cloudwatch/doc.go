// Package cloudwatch answers Amazon CloudWatch clients that read the service's metrics: GetMetricData, GetMetricStatistics and ListMetrics in the
// namespace AWS/GameLift, from the stored series. It implements the three protocols of these clients: Smithy RPC v2 with CBOR, JSON 1.0 and AWS Query.
package cloudwatch
