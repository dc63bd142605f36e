# SPDX-FileCopyrightText: 2026 the pcbatch authors
# SPDX-License-Identifier: BSD-2-Clause
#
# plots.gp - from the .dat files of report.awk. Variables: dir, svg.
set terminal svg size 900,600 dynamic background rgb 'white' font 'sans,14'
set datafile missing '-1'
set logscale xy
set xrange [0.9:600]
set xtics (1,2,4,8,16,32,64,128,256,512)
set xlabel 'CPUs'
set grid xtics ytics lc rgb '#dddddd'
set key outside right top
variants = 'shared_atomic kernel_before kernel_stocked kernel_after pcbatch_burst pcbatch_pair percpu_atomic pcbatch_add'
titles = '"shared atomics" "kernel, before 002+000" "kernel, before 000" "kernel, after both" "pcbatch, bursts of 256" "pcbatch pair" "atomic a CPU (add)" "pcbatch add"'
colours = '#d62728 #ff7f0e #bcbd22 #8c564b #17becf #1f77b4 #9467bd #2ca02c'
file(i) = dir.'/'.word(variants, i).'.dat'

set output svg.'/model_transfers.svg'
set title 'Line transfers between CPUs an operation (counted)'
set ylabel 'transfers an operation'
set yrange [7e-5:5]
set format y '10^{%T}'
set label 1 'none (the axis has no 0)' at 20, 1.3e-4
plot for [i = 1:8] file(i) using 1:2 with linespoints lw 2 pt i lc rgb word(colours, i) title word(titles, i)

set output svg.'/model_ns.svg'
set title 'CPU time an operation (lines: predicted; circles: measured)'
set ylabel 'ns'
set yrange [5:1e5]
unset label 1
plot for [i = 1:8] file(i) using 1:3 with linespoints lw 2 pt i ps 0.6 lc rgb word(colours, i) title word(titles, i), \
     for [i = 1:8] file(i) using 1:4 with points pt 6 ps 1.6 lw 2 lc rgb word(colours, i) notitle
