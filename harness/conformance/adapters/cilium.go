// cilium/ebpf's perf.Reader as a subject: prints Read's results until SIGINT.
// usage: perfring conform -- cilium {pages} {wakeup_watermark}
package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/perf"
)

func main() {
	pages := 64
	if len(os.Args) > 1 {
		pages, _ = strconv.Atoi(os.Args[1])
	}
	options := perf.ReaderOptions{}
	if len(os.Args) > 2 {
		options.Watermark, _ = strconv.Atoi(os.Args[2])
	}
	array, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.PerfEventArray})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	reader, err := perf.NewReaderWithOptions(array, pages*os.Getpagesize(), options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		record, err := reader.Read()
		switch {
		case err != nil:
			fmt.Println("error", err)
		case record.LostSamples > 0:
			fmt.Println("lost", record.LostSamples)
		default:
			fmt.Println("sample", hex.EncodeToString(record.RawSample))
		}
	}
}
