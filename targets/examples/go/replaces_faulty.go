//go:build faulty

package main

const name = "Leader epochs in Go, faulty"

// The template with a fault, which the judge must find: an entry at the same offset stays. A leader that begins where the
// one before it wrote nothing then leaves two epochs at one offset.
//
//	go build -C targets/examples/go -tags faulty -o faulty .
//	kafkaspec judge --target targets/examples/go/faulty leader_epochs
func replaces(epoch, startOffset int64, entry [2]int64) bool {
	return entry[0] >= epoch || entry[1] > startOffset
}
