//go:build !faulty

package main

const name = "Leader epochs in Go"

// replaces says whether an entry goes when a new epoch is assigned: its epoch and its offset must both be lower to stay.
func replaces(epoch, startOffset int64, entry [2]int64) bool {
	return entry[0] >= epoch || entry[1] >= startOffset
}
